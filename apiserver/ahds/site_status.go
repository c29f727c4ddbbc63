package ahds

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
)

// siteResource is the resource of Site objects. The right to read a Site's status is the right to
// read the Site object.
const siteResource = "sites"

// routeSite registers the paths of the Site itself.
func (h *handler) routeSite(site paths) {
	site.add("/site-status", methods{http.MethodGet: {verb: "get", group: ResourceGroup, resource: siteResource, run: h.siteStatus}})
	site.add("/site-usage", methods{http.MethodGet: {verb: "get", group: ResourceGroup, resource: siteResource, run: h.siteUsage}})
	site.add("/rights", methods{http.MethodGet: {group: ResourceGroup, run: h.rights}})
}

// siteStatus serves GET …/site-status: the conditions of the Site object. It needs no storage, so
// that it answers also while the storage is not ready.
func (h *handler) siteStatus(w http.ResponseWriter, r *request) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	conditions := []jsontext.Value{}
	for _, condition := range r.site.Conditions {
		conditions = append(conditions, renderCondition(condition))
	}
	all, err := json.Marshal(conditions)
	if err != nil {
		return err
	}
	body := schema.NewWriter(nil)
	body.String("siteId", r.site.ID)
	body.Raw("conditions", all)
	return r.respond(w, http.StatusOK, typeJSON, body.Done())
}

func renderCondition(c metav1.Condition) jsontext.Value {
	w := schema.NewWriter(nil)
	w.String("type", c.Type)
	w.String("status", string(c.Status))
	w.String("reason", c.Reason)
	w.String("message", c.Message)
	w.String("changedAt", schema.Stamp(c.LastTransitionTime.Time))
	return w.Done()
}
