package extract

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// moment adds a date, a dateTime or an instant as the period of its precision. R4 search.html#date.
func (e *extractor) moment(json []byte) {
	if from, until, ok := r4.Microseconds(unquote(json)); ok {
		e.add(store.Period{From: from, Until: until})
	}
}

// period adds a Period, which can be open at one end. A Period without start and end has no value.
func (e *extractor) period(json []byte) {
	period := store.Period{From: store.TheBeginning, Until: store.TheEnd}
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			break
		}
		switch from, until, ok := r4.Microseconds(unquote(value)); {
		case ok && string(name) == "start":
			period.From = from
		case ok && string(name) == "end":
			period.Until = until
		}
	}
	if period == (store.Period{From: store.TheBeginning, Until: store.TheEnd}) {
		return
	}
	// If only one end has a zone, the computed end can be before the start.
	period.Until = max(period.Until, period.From+1)
	e.add(period)
}
