package jsonpatch

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const large = 1 << 20

func apply(document, patch string, limit int) (string, error) {
	p, err := Parse([]byte(patch))
	if err != nil {
		return "", err
	}
	patched, err := p.Apply([]byte(document), limit)
	return string(patched), err
}

// TestSuites runs the test suites that implementations of RFC 6902 share.
func TestSuites(t *testing.T) {
	ran := 0
	for _, file := range []string{"tests.json", "spec_tests.json"} {
		content, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct {
			Comment    string
			Doc, Patch json.RawMessage
			Expected   json.RawMessage
			Error      string
			Disabled   bool
		}
		if err := json.Unmarshal(content, &cases); err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if c.Disabled || c.Patch == nil {
				continue
			}
			ran++
			t.Run(file+" "+strconv.Itoa(i)+" "+c.Comment, func(t *testing.T) {
				got, err := apply(string(c.Doc), string(c.Patch), large)
				switch {
				case c.Error != "":
					if err == nil {
						t.Errorf("applied to give %s, must fail: %s", got, c.Error)
					}
				case err != nil:
					t.Error(err)
				case c.Expected != nil && !reflect.DeepEqual(value(t, got), value(t, string(c.Expected))):
					t.Errorf("got %s, want %s", got, c.Expected)
				}
			})
		}
	}
	if ran < 100 {
		t.Errorf("only %d tests ran", ran)
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestUntouchedTextIsKept shows that what no operation touches stays as it was written.
func TestUntouchedTextIsKept(t *testing.T) {
	const document = " {\"z\": 1.50, \"a\" :1e400,\n\t\"\\u0062\":\"\\u00e9 \\/ <é\", \"n\" : {\"y\":1,  \"x\": [ 1 , 2 ]},\"e\":{ },\"f\":[\t] } \n"
	for patch, want := range map[string]string{
		`[]`: document,
		`[{"op":"replace","path":"/z","value":2.0}]`:                               strings.Replace(document, "1.50", "2.0", 1),
		`[{"op":"add","path":"/z","value":[ 2 ]}]`:                                 strings.Replace(document, "1.50", "[ 2 ]", 1),
		`[{"op":"remove","path":"/a"}]`:                                            strings.Replace(document, " \"a\" :1e400,", "", 1),
		`[{"op":"replace","path":"/b","value":"x"}]`:                               strings.Replace(document, `"\u00e9 \/ <é"`, `"x"`, 1),
		`[{"op":"add","path":"/n/x/1","value":7}]`:                                 strings.Replace(document, "[ 1 , 2 ]", "[ 1 ,7, 2 ]", 1),
		`[{"op":"add","path":"/n/x/-","value":7}]`:                                 strings.Replace(document, "[ 1 , 2 ]", "[ 1 , 2 ,7]", 1),
		`[{"op":"remove","path":"/n/x/1"}]`:                                        strings.Replace(document, "[ 1 , 2 ]", "[ 1 ]", 1),
		`[{"op":"add","path":"/n/w","value":null}]`:                                strings.Replace(document, " ]}", ` ],"w":null}`, 1),
		`[{"op":"add","path":"/e/\"","value":1}]`:                                  strings.Replace(document, "{ }", `{"\"":1}`, 1),
		`[{"op":"add","path":"/f/0","value":1}]`:                                   strings.Replace(document, "[\t]", `[1]`, 1),
		`[{"op":"test","path":"/e","value":{}}]`:                                   document,
		`[{"op":"test","path":"/f","value":[]}]`:                                   document,
		`[{"op":"copy","from":"/n/x","path":"/f/0"}]`:                              strings.Replace(document, "[\t]", "[[ 1 , 2 ]]", 1),
		`[{"op":"move","from":"/n","path":"/n"}]`:                                  document,
		`[{"op":"add","path":"/n/x/0","value":5},{"op":"remove","path":"/n/x/0"}]`: document,
	} {
		if got, err := apply(document, patch, large); err != nil || got != want {
			t.Errorf("%s:\n got %q\nwant %q, %v", patch, got, want, err)
		}
	}
}

func TestTests(t *testing.T) {
	for name, c := range map[string]struct {
		a, b string
		want bool
	}{
		"numbers by value":            {"1.0", "1", true},
		"with exponents":              {"1e2", "100", true},
		"with large exponents":        {"1E400", "0.10e+401", true},
		"with negative exponents":     {"12e-1", "1.2", true},
		"of either sign":              {"-1", "1", false},
		"zeros":                       {"-0.0", "0e5", true},
		"beyond doubles":              {"9007199254740993", "9007199254740992", false},
		"by digits":                   {"100", "10", false},
		"beyond all exponents":        {"1e99999999999999999999", "1e99999999999999999999", true},
		"of different exponents":      {"1e99999999999999999999", "1e99999999999999999998", false},
		"strings by characters":       {`"\u00e9\/"`, `"é/"`, true},
		"in case":                     {`"a"`, `"A"`, false},
		"a string and a number":       {`"1"`, "1", false},
		"true and false":              {"true", "false", false},
		"null and false":              {"null", "false", false},
		"objects in another order":    {`{"a":1,"b":[1.0]}`, `{ "b":[1], "a":1 }`, true},
		"by an escaped name":          {`{"\u0061":1}`, `{"a":1}`, true},
		"with another name":           {`{"a":1}`, `{"b":1}`, false},
		"with more members":           {`{"a":1}`, `{"a":1,"b":2}`, false},
		"arrays":                      {`[1,2]`, `[ 1,2]`, true},
		"arrays in another order":     {`[1,2]`, `[2,1]`, false},
		"arrays of different lengths": {`[1]`, `[1,1]`, false},
		"an array and an object":      {`[]`, `{}`, false},
	} {
		_, err := apply(`{"v":`+c.a+`}`, `[{"op":"test","path":"/v","value":`+c.b+`}]`, large)
		var conflict *ConflictError
		switch {
		case c.want && err != nil, !c.want && !errors.As(err, &conflict):
			t.Errorf("%s: %v", name, err)
		case !c.want && !conflict.Test:
			t.Errorf("%s: the error does not tell that a test failed", name)
		}
	}
}

func TestInvalid(t *testing.T) {
	for name, patch := range map[string]string{
		"nothing":                    ``,
		"no JSON":                    `[{`,
		"null":                       `null`,
		"an object":                  `{}`,
		"a string in it":             `["add"]`,
		"null in it":                 `[null]`,
		"op of another kind":         `[{"op":1,"path":""}]`,
		"no op":                      `[{"path":"/a"}]`,
		"an unknown op":              `[{"op":"merge","path":"/a"}]`,
		"op in capitals":             `[{"op":"ADD","path":"/a","value":1}]`,
		"a member in capitals":       `[{"Op":"add","path":"/a","value":1}]`,
		"no path":                    `[{"op":"remove"}]`,
		"no value":                   `[{"op":"add","path":"/a"}]`,
		"no from":                    `[{"op":"move","path":"/a"}]`,
		"a path without slash":       `[{"op":"remove","path":"a"}]`,
		"a from without slash":       `[{"op":"copy","path":"/a","from":"b"}]`,
		"a ~ at the end":             `[{"op":"remove","path":"/a~"}]`,
		"a ~2":                       `[{"op":"remove","path":"/~0~2"}]`,
		"the document removed":       `[{"op":"remove","path":""}]`,
		"a move into itself":         `[{"op":"move","from":"/a","path":"/a/b"}]`,
		"a name given twice":         `[{"op":"add","op":"add","path":"/a","value":1}]`,
		"a name in a value twice":    `[{"op":"add","path":"/a","value":{"b":1,"b":2}}]`,
		"what is not UTF-8":          "[{\"op\":\"add\",\"path\":\"/a\",\"value\":\"\xff\"}]",
		"too many operations":        `[{"op":"test","path":"","value":1}` + strings.Repeat(`,{"op":"test","path":"","value":1}`, maxOperations) + `]`,
		"more behind the end":        `[] []`,
		"deeper than can be counted": strings.Repeat("[", 20000),
	} {
		_, err := Parse([]byte(patch))
		var invalid *InvalidError
		if !errors.As(err, &invalid) || len(err.Error()) > 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConflicts(t *testing.T) {
	const document = `{"a":[1,2],"s":"x","o":{}}`
	for name, patch := range map[string]string{
		"remove what is not there":      `{"op":"remove","path":"/b"}`,
		"replace what is not there":     `{"op":"replace","path":"/b","value":1}`,
		"test what is not there":        `{"op":"test","path":"/b","value":null}`,
		"add below what is not there":   `{"op":"add","path":"/b/c","value":1}`,
		"add below a string":            `{"op":"add","path":"/s/c","value":1}`,
		"add behind the end":            `{"op":"add","path":"/a/3","value":1}`,
		"add at a name in an array":     `{"op":"add","path":"/a/x","value":1}`,
		"add at an index with a zero":   `{"op":"add","path":"/a/01","value":1}`,
		"remove at a negative index":    `{"op":"remove","path":"/a/-1"}`,
		"remove at an index with a +":   `{"op":"remove","path":"/a/+1"}`,
		"remove behind the end":         `{"op":"remove","path":"/a/-"}`,
		"replace behind the end":        `{"op":"replace","path":"/a/2","value":1}`,
		"copy from what is not there":   `{"op":"copy","from":"/b","path":"/c"}`,
		"move from what is not there":   `{"op":"move","from":"/b","path":"/b"}`,
		"move below what is moved away": `{"op":"move","from":"/a","path":"/a2/x"}`,
		"an index beyond all numbers":   `{"op":"remove","path":"/a/99999999999999999999"}`,
	} {
		_, err := apply(document, `[{"op":"add","path":"/z","value":1},`+patch+`]`, large)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || conflict.Operation != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSizes(t *testing.T) {
	double := `{"op":"copy","from":"","path":"/a"}`
	for name, patch := range map[string]string{
		"a value":        `[{"op":"add","path":"/b","value":"` + strings.Repeat("x", 1000) + `"}]`,
		"copies":         `[` + double + strings.Repeat(","+double, 100) + `]`,
		"copies removed": `[` + strings.Repeat(`{"op":"copy","from":"/a","path":"/b"},{"op":"remove","path":"/b"},`, 200) + double + `]`,
	} {
		_, err := apply(`{"a":"0123456789"}`, patch, 1000)
		var size *SizeError
		if !errors.As(err, &size) {
			t.Errorf("%s: %v", name, err)
		}
	}
	replaced := strings.Repeat(`{"op":"replace","path":"/a","value":"`+strings.Repeat("x", 500)+`"},`, 50)
	if _, err := apply(`{"a":1}`, `[`+strings.TrimSuffix(replaced, ",")+`]`, 1000); err != nil {
		t.Errorf("what replaces itself: %v", err)
	}
	name := strings.Repeat("n", 500)
	moved := `{"op":"add","path":"/` + name + `","value":1},{"op":"remove","path":"/` + name + `"},`
	if _, err := apply(`{"a":1}`, `[`+strings.TrimSuffix(strings.Repeat(moved, 50), ",")+`]`, 1000); err != nil {
		t.Errorf("members that are removed: %v", err)
	}
}

func TestCost(t *testing.T) {
	const elements = 100_000
	repeated := func(operations string) string { return strings.Repeat(","+operations, 400) }
	var members strings.Builder
	for i := range elements {
		members.WriteString(`,"m` + strconv.Itoa(i) + `":0`)
	}
	list := `{"op":"add","path":"/x","value":[0` + strings.Repeat(",0", elements) + `]}`
	object := `{"op":"add","path":"/x","value":{"a":0` + members.String() + `}}`
	for name, patch := range map[string]string{
		"at the beginning of a list": list + repeated(`{"op":"add","path":"/x/0","value":1}`),
		"moved within a list":        list + repeated(`{"op":"move","from":"/x/0","path":"/x/1"}`),
		"removed from a list":        list + repeated(`{"op":"remove","path":"/x/0"}`),
		"lists that are moved":       list + `,{"op":"add","path":"/x/-","value":1}` + repeated(`{"op":"move","from":"/x","path":"/y"},{"op":"move","from":"/y","path":"/x"}`),
		"looked for in an object":    object + repeated(`{"op":"replace","path":"/x/m99999","value":1}`),
	} {
		_, err := apply(`{}`, `[`+patch+`]`, 4*large)
		var cost *CostError
		if !errors.As(err, &cost) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := apply(`{}`, `[`+list+repeated(`{"op":"add","path":"/x/-","value":1}`)+`]`, large); err != nil {
		t.Errorf("at the end of a list: %v", err)
	}
}
