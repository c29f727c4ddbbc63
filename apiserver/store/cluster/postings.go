package cluster

import (
	"github.com/paddock-health/paddock/apiserver/store"
)

// postings lists the entries that have a value, by parameter and by code or by
// system: each form of a token condition names one of the two.
type postings map[posting]map[*entry]struct{}

// posting is a list's name. One of system and code is set.
type posting struct {
	param, system, code string
}

func postingsOf(value store.Entry) []posting {
	var names []posting
	if value.Token.Code != "" {
		names = append(names, posting{param: value.Param, code: value.Token.Code})
	}
	if value.Token.System != "" {
		names = append(names, posting{param: value.Param, system: value.Token.System})
	}
	return names
}

func (p postings) add(e *entry) {
	for _, value := range e.entries {
		for _, name := range postingsOf(value) {
			if p[name] == nil {
				p[name] = map[*entry]struct{}{}
			}
			p[name][e] = struct{}{}
		}
	}
}

func (p postings) remove(e *entry) {
	for _, value := range e.entries {
		for _, name := range postingsOf(value) {
			delete(p[name], e)
			if len(p[name]) == 0 {
				delete(p, name)
			}
		}
	}
}

// candidates returns entries among which are all that meet a condition.
func (p postings) candidates(condition store.TokenCondition) []map[*entry]struct{} {
	lists := make([]map[*entry]struct{}, 0, len(condition.AnyOf))
	for _, match := range condition.AnyOf {
		name := posting{param: condition.Param}
		switch {
		case match.Code != nil:
			name.code = *match.Code
		case match.System != nil:
			name.system = *match.System
		}
		lists = append(lists, p[name])
	}
	return lists
}

// fewest returns the candidates of the condition that leaves the fewest.
func (p postings) fewest(conditions []store.TokenCondition) []*entry {
	var best []map[*entry]struct{}
	size := -1
	for _, condition := range conditions {
		lists := p.candidates(condition)
		n := 0
		for _, list := range lists {
			n += len(list)
		}
		if size < 0 || n < size {
			best, size = lists, n
		}
	}
	seen := make(map[*entry]struct{}, max(size, 0))
	found := make([]*entry, 0, max(size, 0))
	for _, list := range best {
		for e := range list {
			if _, twice := seen[e]; !twice {
				seen[e] = struct{}{}
				found = append(found, e)
			}
		}
	}
	return found
}

// hasToken reports whether an entry meets a condition.
func (e *entry) hasToken(condition store.TokenCondition) bool {
	for _, value := range e.entries {
		if value.Param != condition.Param {
			continue
		}
		for _, match := range condition.AnyOf {
			if match.Matches(value.Token) {
				return true
			}
		}
	}
	return false
}
