package cluster

import (
	"encoding/json"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// noLabels is the encoding of empty labels, which most records have.
const noLabels = "{}"

func encodeLabels(labels store.Labels) string {
	if len(labels.Names) == 0 && len(labels.Links) == 0 {
		return noLabels
	}
	encoded, err := json.Marshal(labels)
	if err != nil {
		panic(err) // impossible: Labels consists of strings
	}
	return string(encoded)
}

// parseLabels decodes labels. known is false if the encoding is empty or invalid.
func parseLabels(encoded string) (labels store.Labels, known bool) {
	if encoded == noLabels {
		return store.Labels{}, true
	}
	err := json.Unmarshal([]byte(encoded), &labels)
	return labels, err == nil
}

// setHistoryLabels adds the labels of the current version, which next supersedes, to the labels of
// the superseded versions in next. If next is a tombstone, it gets the labels of the current version.
func (x *index) setHistoryLabels(current *recordsv1.RecordSpec, next *recordsv1.RecordSpec) {
	superseded := current.Labels
	if !current.Deleted {
		superseded = encodeLabels(x.extractor.Labels(current.Type, x.extractor.Extract(current.Type, []byte(current.Body))))
	}
	listed := make([]string, len(current.HistoryUpdated), len(current.HistoryUpdated)+1)
	if older := len(listed) - len(current.HistoryLabels); older >= 0 {
		copy(listed[older:], current.HistoryLabels)
	}
	listed = append(listed, superseded)
	next.HistoryLabels = listed[len(listed)-len(next.HistoryUpdated):]
	next.Labels = ""
	if next.Deleted {
		next.Labels = superseded
	}
}

// labelsAt returns the labels of a superseded version as JSON. They are empty if they are unknown.
func labelsAt(spec *recordsv1.RecordSpec, number int64) string {
	at := int64(len(spec.HistoryLabels)) - (spec.Version - number)
	if at < 0 || at >= int64(len(spec.HistoryLabels)) {
		return ""
	}
	return spec.HistoryLabels[at]
}

// historyAccess is the compiled Access of a history.
type historyAccess struct {
	unrestricted bool
	byType       map[string]filter
}

// historyAccess compiles the Access of a history. The caller must hold the lock of the index as
// long as it uses the result.
func (x *index) historyAccess(query store.HistoryQuery, w *queryBudget) (historyAccess, error) {
	if query.Access == nil {
		return historyAccess{unrestricted: true}, nil
	}
	c := compiler{index: x, bases: query.Bases, budget: w}
	s := historyAccess{byType: map[string]filter{}}
	for typeName, condition := range query.Access {
		f, err := c.compile(typeName, condition)
		if err != nil {
			return historyAccess{}, err
		}
		s.byType[typeName] = f
	}
	return s, nil
}

// visible returns those of the versions of a record that the caller may see. versions are all
// versions, newest first. It returns nil if the newest one is hidden.
func (s historyAccess) visible(newest *indexedRecord, versions []version) []version {
	if s.unrestricted {
		return versions
	}
	f, listed := s.byType[newest.obj.Spec.Type]
	if !listed || !f.everything && (!newest.labelled || !f.matches(newest)) {
		return nil
	}
	if f.everything {
		return versions
	}
	allowed := versions[:1]
	for _, v := range versions[1:] {
		labels, labelled := parseLabels(v.labels)
		if labelled && f.matches(&indexedRecord{obj: newest.obj, id: newest.id, labels: labels}) {
			allowed = append(allowed, v)
		}
	}
	return allowed
}

// linksTo returns the filter of store.LinksTo. Access does not apply to the linked records.
func (c *compiler) linksTo(condition store.LinksTo) (filter, error) {
	unrestricted := compiler{index: c.index, bases: c.bases, budget: c.budget}
	target, err := unrestricted.compile(condition.Type, condition.Where)
	if err != nil {
		return filter{}, err
	}
	return filter{matches: func(e *indexedRecord) bool {
		for _, link := range e.labels.Links {
			to, local := link.To.Local(c.bases)
			if link.Param != condition.Param || !local {
				continue
			}
			found := c.index.live(to)
			if found == nil || to.Type != condition.Type || !target.matches(found) {
				return false
			}
		}
		return true
	}}, nil
}
