package extract

import (
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// moment adds a date, a dateTime or an instant, with the length that its precision
// gives it. R4 search.html#date.
func (e *extraction) moment(json []byte) {
	if from, until, ok := r4.Microseconds(unquoted(json)); ok {
		e.add(store.Period{From: from, Until: until})
	}
}

// period adds a Period, which can be open at either end.
func (e *extraction) period(json []byte) {
	period := store.Period{From: store.TheBeginning, Until: store.TheEnd}
	for members := objectOf(json); ; {
		name, value, ok := members.next()
		if !ok {
			break
		}
		switch from, until, ok := r4.Microseconds(unquoted(value)); {
		case ok && string(name) == "start":
			period.From = from
		case ok && string(name) == "end":
			period.Until = until
		}
	}
	if period == (store.Period{From: store.TheBeginning, Until: store.TheEnd}) {
		return
	}
	// Without a zone on both sides, the end can come to lie before the start.
	period.Until = max(period.Until, period.From+1)
	e.add(period)
}
