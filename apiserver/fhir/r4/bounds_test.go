package r4

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// processorTime returns the processor time that this process has used. Other work on the machine does not
// change it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// TestBounds reads bodies of 4 MiB that are made to cost much: none may take long
// or take many times its size in memory.
func TestBounds(t *testing.T) {
	const size = 4 << 20
	fill := func(start, item, separator, end string) string {
		return start + strings.TrimSuffix(strings.Repeat(item+separator, (size-len(start)-len(end))/len(item+separator)), separator) + end
	}
	nest := func(start, inner, end string, levels int) string {
		return strings.Repeat(start, levels) + inner + strings.Repeat(end, levels)
	}
	const patient = `{"resourceType":"Patient",`
	references := fill("", `{"url":"u","valueReference":{"reference":"#a"}}`, ",", "")
	bodies := map[string]struct{ typ, body string }{
		"unknown members":            {"Patient", fill(patient, `"x":1`, ",", "}")},
		"one long unknown name":      {"Patient", patient + `"` + strings.Repeat("x", size) + `":1}`},
		"a doubled name":             {"Patient", fill(patient, `"active":true`, ",", "}")},
		"nulls in step":              {"Patient", patient + `"name":[{"given":[` + fill("", "null", ",", "")[:size/2] + `null],"_given":[` + fill("", "null", ",", "")[:size/2] + `null]}]}`},
		"deep local references":      {"Patient", patient + nest(`"extension":[{"url":"u",`, `"extension":[`+references+`]`, `}]`, 28) + "}"},
		"many contained resources":   {"Patient", fill(patient+`"contained":[`, `{"resourceType":"Basic","id":"a","code":{"text":"c"}}`, ",", "]}")},
		"bundles whose type is last": {"Bundle", nest(`{"entry":[{"resource":`, `{"id":"`+strings.Repeat("x", size)+`","resourceType":"Basic"}`, `}],"type":"batch","resourceType":"Bundle"}`, 15)},
		"one long narrative":         {"Patient", fill(patient+`"text":{"status":"empty","div":"<div xmlns='http://www.w3.org/1999/xhtml'>`, `<b title='&amp;'>&lt;</b>`, "", `</div>"}}`)},
		"open elements":              {"Patient", fill(patient+`"text":{"status":"empty","div":"<div xmlns='http://www.w3.org/1999/xhtml'>`, `<b>`, "", `"}}`)},
		"names":                      {"Patient", fill(patient+`"name":[`, `{"text":"n"}`, ",", "]}")},
		"one long number":            {"Patient", patient + `"extension":[{"url":"u","valueRange":{"low":{"value":1` + strings.Repeat("0", size) + `},"high":{"value":1e` + strings.Repeat("9", size) + `}}}]}`},
		"arrays in what is unknown":  {"Patient", patient + `"x":` + nest("[", "", "]", 9000) + "}"},
	}
	for name, b := range bodies {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := processorTime(t)
			_, err := Read([]byte(b.body), Options{Type: b.typ, Index: true})
			took := processorTime(t) - start
			runtime.ReadMemStats(&after)
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%v, %d MB, %v", took, allocated>>20, err != nil)
			if took > 5*time.Second || allocated > 64*size {
				t.Errorf("a body of %d bytes took %v and %d bytes", len(b.body), took, allocated)
			}
			if err != nil && len(err.Error()) > maxIssues*1000 {
				t.Errorf("the issues take %d bytes", len(err.Error()))
			}
		})
	}
}
