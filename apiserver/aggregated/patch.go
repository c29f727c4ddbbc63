package aggregated

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
)

// refuseStrategicMerge refuses the patches that the library would take of every kind: as
// with custom resources there are no rules for merging lists.
func refuseStrategicMerge(next http.Handler, serializer runtime.NegotiatedSerializer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
		if r.Method == http.MethodPatch && strings.EqualFold(strings.TrimSpace(kind), string(types.StrategicMergePatchType)) {
			taken := []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
			responsewriters.ErrorNegotiated(negotiation.NewUnsupportedMediaTypeError(taken), serializer, r4v1.GroupVersion, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
