package aggregated

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
)

// Limits of one JSON patch or merge patch. A patch beyond a limit is refused. The library traverses
// a merge patch once for each level, and an array once for each operation on it.
const (
	maxPatchSize  = 3 << 20 // in bytes; the library has the same limit
	maxPatchDepth = 64
	maxPatchWork  = 256 << 20 // operations times bytes
)

// checkPatches refuses strategic merge patches, because the kinds have no rules for merging lists
// (as custom resources have none), and patches that would take the library too much time.
func checkPatches(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch {
			if err := checkPatch(r); err != nil {
				responsewriters.ErrorNegotiated(err, serializer, r4v1.GroupVersion, w, r)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// checkPatch returns an error for a strategic merge patch, and for a patch beyond maxPatchDepth or
// maxPatchWork. The library refuses a patch beyond maxPatchSize. checkPatch restores the body of
// the request.
func checkPatch(r *http.Request) error {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch types.PatchType(strings.ToLower(strings.TrimSpace(kind))) {
	case types.StrategicMergePatchType:
		return negotiation.NewUnsupportedMediaTypeError([]string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)})
	case types.JSONPatchType, types.MergePatchType:
	default:
		return nil
	}
	body := r.Body
	text, err := io.ReadAll(io.LimitReader(body, maxPatchSize+1))
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the patch cannot be read: %v", err))
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(text), body), body}
	return checkPatchCost(text)
}

// checkPatchCost returns an error for a patch beyond maxPatchDepth or maxPatchWork. It accepts
// invalid JSON, which the library refuses.
func checkPatchCost(text []byte) error {
	// The library accepts repeated names and invalid UTF-8, so they must not end the count.
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	operations := 0
	for {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil //nolint:nilerr // the end, or the library's to refuse
		}
		if decoder.StackDepth() > maxPatchDepth {
			return apierrors.NewBadRequest(fmt.Sprintf("the patch is nested too deeply; send at most %d levels", maxPatchDepth))
		}
		if token.Kind() == jsontext.KindBeginObject && decoder.StackDepth() == 2 {
			operations++
		}
		if operations*len(text) > maxPatchWork {
			return apierrors.NewRequestEntityTooLargeError("the patch has too many operations for its size; split it into several patches")
		}
	}
}
