package aggregated

import (
	"context"
	"errors"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesaudit "k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	r4v1 "github.com/paddock-health/paddock/api/r4/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/audit"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// audited records requests for resources of the group, including those that next denies.
func (c *Config) audited(next http.Handler, sites Sites, resolver request.RequestInfoResolver, serializer runtime.NegotiatedSerializer) http.Handler {
	recorded := c.Audit.Handler("kubernetes", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if info, err := resolver.NewRequestInfo(r); err == nil {
			note(r.Context(), sites, info)
		}
		next.ServeHTTP(w, r)
	}), func(w http.ResponseWriter, r *http.Request, err error) {
		responsewriters.ErrorNegotiated(auditUnavailable(err), serializer, r4v1.GroupVersion, w, r)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := resolver.NewRequestInfo(r)
		if err != nil || !info.IsResourceRequest || info.APIGroup != r4v1.GroupVersion.Group {
			next.ServeHTTP(w, r)
			return
		}
		recorded.ServeHTTP(w, r)
	})
}

// auditUnavailable returns the error of the API machinery for a request that cannot be recorded. It
// has a Retry-After only if nothing was written, because clients repeat a request with one.
func auditUnavailable(err error) *apierrors.StatusError {
	answer := apierrors.NewServiceUnavailable(err.Error())
	answer.ErrStatus.Details = &metav1.StatusDetails{
		Group:  r4v1.GroupVersion.Group,
		Causes: []metav1.StatusCause{{Type: "audit_unavailable", Message: err.Error()}},
	}
	if !errors.Is(err, audit.ErrWritten) {
		answer.ErrStatus.Details.RetryAfterSeconds = retryAfter
	}
	return answer
}

// note sets the Site, the interaction and the record of a request in its audit entry. A request to
// a facade is skipped until the facade sets them.
func note(ctx context.Context, sites Sites, info *request.RequestInfo) {
	recorder := audit.From(ctx)
	if site, err := sites.Site(info.Namespace); err == nil {
		recorder.At(site.Audit)
	}
	at := slices.IndexFunc(r4v1.Kinds, func(kind r4v1.Kind) bool { return kind.Plural == info.Resource })
	if at < 0 { // the FHIR and AHDS APIs of facades call Interaction themselves
		recorder.Skip()
		return
	}
	key := store.Key{Type: r4v1.Kinds[at].Name}
	if r4.ValidID(info.Name) {
		key.ID = info.Name
	}
	recorder.Interaction(info.Verb, audit.ActionOf(info.Verb), key)
	recorder.Statuses(writeStatuses)
}

// writeStatuses are the statuses of the responses to writes of a record. Kubernetes API concepts, "HTTP
// verbs".
var writeStatuses = map[store.Outcome]int{store.Created: http.StatusCreated, store.Updated: http.StatusOK, store.Removed: http.StatusOK}

// noting is an authorizer that sets the caller and the id of a request in its audit entry.
type noting struct{ authorizer.Authorizer }

// Authorize implements authorizer.Authorizer.
func (n noting) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	recorder := audit.From(ctx)
	if who := a.GetUser(); who != nil {
		recorder.Caller(callerFrom(who))
	}
	if id, ok := kubernetesaudit.AuditIDFrom(ctx); ok {
		recorder.Identify(string(id), "")
	}
	return n.Authorizer.Authorize(ctx, a)
}

func callerFrom(who user.Info) access.Caller {
	return access.Caller{Name: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: who.GetExtra()}
}
