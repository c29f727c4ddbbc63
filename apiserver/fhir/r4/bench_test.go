package r4

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// BenchmarkRead measures the reader beside a bare walk over the tokens and
// encoding/json, in one run.
func BenchmarkRead(b *testing.B) {
	for _, name := range []string{"patient-1k.json", "patient-2.5k.json"} {
		body := readTestdata(b, name)
		run := func(what string, do func() error) {
			b.Run(what+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		run("reader", func() error {
			_, err := Read(body, Options{Type: "Patient"})
			return err
		})
		run("reader-with-index", func() error {
			_, err := Read(body, Options{Type: "Patient", Index: true})
			return err
		})
		var buffer bytes.Buffer
		decoder := jsontext.NewDecoder(&buffer)
		run("bare-walk", func() error {
			buffer = *bytes.NewBuffer(body)
			decoder.Reset(&buffer)
			for {
				if _, err := decoder.ReadToken(); err == io.EOF { //nolint:errorlint // the decoder returns it bare
					return nil
				} else if err != nil {
					return err
				}
			}
		})
		run("unmarshal-map", func() error {
			var m map[string]any
			return json.Unmarshal(body, &m)
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	stored, err := Read(readTestdata(b, "patient-2.5k.json"), Options{Type: "Patient"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(Index(stored.Body, "Patient")) == 0 {
			b.Fatal("nothing is indexed")
		}
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	body := readTestdata(b, "patient-2.5k.json")
	res, err := Read(body, Options{Type: "Patient"})
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]byte, 0, 2*len(body))
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendJSON(dst[:0], res.Body, res.IDOffset, res.MetaOffset, "bella-2", 12, updated)
	}
}

// TestReadAllocates keeps an eye on what a body costs the garbage collector.
func TestReadAllocates(t *testing.T) {
	for _, name := range []string{"patient-1k.json", "patient-2.5k.json"} {
		body := readTestdata(t, name)
		got := testing.AllocsPerRun(100, func() {
			if _, err := Read(body, Options{Type: "Patient", Index: true}); err != nil {
				t.Fatal(err)
			}
		})
		if got > 10 {
			t.Errorf("%s is read with %v allocations", name, got)
		}
	}
}
