package clients_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// parse reads a resource as a JSON value without what the server sets: meta.versionId and
// meta.lastUpdated. Numbers keep their digits.
func parse(text []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var resource map[string]any
	if err := decoder.Decode(&resource); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one JSON value")
	}
	if meta, ok := resource["meta"].(map[string]any); ok {
		delete(meta, "versionId")
		delete(meta, "lastUpdated")
		if len(meta) == 0 {
			delete(resource, "meta")
		}
	}
	return resource, nil
}

// losses says what a client library does not keep of a record that it reads and writes back.
type losses struct {
	// precision: a decimal such as 1.50 becomes the binary floating-point number 1.5.
	precision bool
	// primitiveExtensions: members such as _birthDate are dropped.
	primitiveExtensions bool
}

// of returns what is left of a JSON value.
func (l losses) of(value any) any {
	switch v := value.(type) {
	case map[string]any:
		left := map[string]any{}
		for name, member := range v {
			if !l.primitiveExtensions || !strings.HasPrefix(name, "_") {
				left[name] = l.of(member)
			}
		}
		return left
	case []any:
		left := make([]any, len(v))
		for i, item := range v {
			left[i] = l.of(item)
		}
		return left
	case json.Number:
		number, err := v.Float64()
		if l.precision && err == nil {
			return json.Number(strconv.FormatFloat(number, 'f', -1, 64))
		}
	}
	return value
}

// keep reports whether nothing of a JSON value is lost.
func (l losses) keep(value any) bool { return reflect.DeepEqual(l.of(value), value) }

func TestLosses(t *testing.T) {
	tests := map[string]struct {
		body   string
		losses losses
		want   bool
	}{
		"a decimal with a trailing zero":             {`{"value":[{"v":1.50}]}`, losses{precision: true}, false},
		"a decimal without one":                      {`{"value":[{"v":1.5}],"n":-40,"e":0.05}`, losses{precision: true}, true},
		"a string that looks like one":               {`{"value":"1.50"}`, losses{precision: true}, true},
		"a decimal, where precision is kept":         {`{"value":1.50,"_id":{}}`, losses{}, true},
		"an extension of a primitive element":        {`{"a":[{"_birthDate":{"id":"b"}}]}`, losses{primitiveExtensions: true}, false},
		"no extension of a primitive element":        {`{"a":[{"birthDate":"1984"}]}`, losses{primitiveExtensions: true}, true},
		"what the server sets, which does not count": {`{"meta":{"versionId":"1"}}`, losses{precision: true, primitiveExtensions: true}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			value, err := parse([]byte(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := test.losses.keep(value); got != test.want {
				t.Errorf("keep is %t, want %t", got, test.want)
			}
		})
	}
}
