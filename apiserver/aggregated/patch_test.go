package aggregated

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestCheckPatch(t *testing.T) {
	nested := func(levels int) string {
		return `{"spec":` + strings.Repeat(`{"a":`, levels) + `1` + strings.Repeat(`}`, levels) + `}`
	}
	operations := func(n, size int) string {
		return `[{"op":"add","path":"/spec/x","value":"` + strings.Repeat("x", size) + `"}` + strings.Repeat(`,{"op":"add","path":"/spec/y","value":1}`, n) + `]`
	}
	const merge, jsonPatch, apply = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	for name, test := range map[string]struct {
		method, kind, body string
		// refused is the status, 0 for none.
		refused int32
	}{
		"merge":                   {http.MethodPatch, merge, nested(60), 0},
		"merge, deep":             {http.MethodPatch, merge, nested(64), http.StatusBadRequest},
		"merge, deep, parameters": {http.MethodPatch, "Application/Merge-Patch+JSON; charset=utf-8", nested(64), http.StatusBadRequest},
		"merge of many members":   {http.MethodPatch, merge, `{"spec":{"a":"` + strings.Repeat("x", 2<<20) + `"}}`, 0},
		"json":                    {http.MethodPatch, jsonPatch, operations(999, 1000), 0},
		"json, deep":              {http.MethodPatch, jsonPatch, `[` + nested(64) + `]`, http.StatusBadRequest},
		"json, one large":         {http.MethodPatch, jsonPatch, operations(1, 2<<20), 0},
		"json, many on what is":   {http.MethodPatch, jsonPatch, operations(2000, 1<<20), http.StatusRequestEntityTooLarge},
		"json, very many":         {http.MethodPatch, jsonPatch, operations(9000, 0), http.StatusRequestEntityTooLarge},
		"a name twice, many":      {http.MethodPatch, jsonPatch, strings.Replace(operations(2000, 1<<20), `"op":`, `"op":"add","op":`, 1), http.StatusRequestEntityTooLarge},
		"invalid UTF-8, deep":     {http.MethodPatch, merge, "{\"b\":\"\xff\"," + nested(64)[1:], http.StatusBadRequest},
		"a lone surrogate, deep":  {http.MethodPatch, merge, `{"b":"\ud83d",` + nested(64)[1:], http.StatusBadRequest},
		"no JSON":                 {http.MethodPatch, merge, `{"spec":`, 0},
		"apply":                   {http.MethodPatch, apply, `spec: {}`, 0},
		"strategic":               {http.MethodPatch, "application/strategic-merge-patch+json", `{}`, http.StatusUnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "/", strings.NewReader(test.body))
			r.Header.Set("Content-Type", test.kind)
			err := checkPatch(r)
			var got int32
			if status, ok := err.(apierrors.APIStatus); ok {
				got = status.Status().Code
			}
			if got != test.refused || (err != nil) != (test.refused != 0) {
				t.Fatalf("got %v", err)
			}
			if body, err := io.ReadAll(r.Body); string(body) != test.body || err != nil {
				t.Errorf("%d bytes of %d are left, error %v", len(body), len(test.body), err)
			}
		})
	}
}
