package privacy

import (
	"fmt"
	"strconv"

	"github.com/paddock-health/paddock/apiserver/store"
)

// everything is the condition that all records meet, and nothing the condition that no record
// meets.
var (
	everything store.Condition = store.All{}
	nothing    store.Condition = store.Any{}
)

func isNothing(condition store.Condition) bool {
	none, ok := condition.(store.Any)
	return ok && len(none) == 0
}

// all returns the simplified conjunction of conditions.
func all(conditions ...store.Condition) store.Condition {
	var parts store.All
	for _, condition := range conditions {
		switch {
		case isNothing(condition):
			return nothing
		case !store.IsEverything(condition):
			parts = append(parts, condition)
		}
	}
	switch len(parts) {
	case 0:
		return everything
	case 1:
		return parts[0]
	default:
		return parts
	}
}

// anyOf returns the simplified disjunction of conditions.
func anyOf(conditions ...store.Condition) store.Condition {
	var parts store.Any
	for _, condition := range conditions {
		switch {
		case store.IsEverything(condition):
			return everything
		case !isNothing(condition):
			parts = append(parts, condition)
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	if len(parts) == 0 {
		return nothing
	}
	return parts
}

// anyUnlessEmpty returns the disjunction of labels, or everything if there are none.
func anyUnlessEmpty(labels store.Any) store.Condition {
	if len(labels) == 0 {
		return everything
	}
	return labels
}

func not(condition store.Condition) store.Condition {
	switch {
	case store.IsEverything(condition):
		return nothing
	case isNothing(condition):
		return everything
	default:
		return store.Not{Condition: condition}
	}
}

// Holds reports whether the labels of one version meet a condition of this package. linked reports
// whether the record to which a link refers meets the condition on linked records. A condition of a
// type that this package does not create counts as not met, so a store.Not of such a condition
// counts as met.
func Holds(condition store.Condition, labels store.Labels, linked func(store.LinksTo, store.Link) bool) bool {
	switch condition := condition.(type) {
	case store.All:
		for _, part := range condition {
			if !Holds(part, labels, linked) {
				return false
			}
		}
		return true
	case store.Any:
		for _, part := range condition {
			if Holds(part, labels, linked) {
				return true
			}
		}
		return false
	case store.Not:
		return !Holds(condition.Condition, labels, linked)
	case store.HasLabel:
		return labels.Has(string(condition))
	case store.LinksTo:
		for _, link := range labels.Links {
			if link.Param == condition.Param && !linked(condition, link) {
				return false
			}
		}
		return true
	default:
		return false // refuse access rather than guess
	}
}

// AppendText appends the text form of a condition to text. Different conditions have different
// texts.
func AppendText(text []byte, condition store.Condition) []byte {
	each := func(name byte, parts []store.Condition) []byte {
		text = append(text, name, '(')
		for _, part := range parts {
			text = append(AppendText(text, part), ',')
		}
		return append(text, ')')
	}
	switch condition := condition.(type) {
	case store.All:
		return each('&', condition)
	case store.Any:
		return each('|', condition)
	case store.Not:
		return AppendText(append(text, '!'), condition.Condition)
	case store.HasLabel:
		return strconv.AppendQuote(text, string(condition))
	case store.LinksTo:
		text = strconv.AppendQuote(append(text, '>'), condition.Param)
		return AppendText(strconv.AppendQuote(text, condition.Type), condition.Where)
	default:
		return fmt.Appendf(text, "%#v", condition)
	}
}
