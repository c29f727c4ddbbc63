package ahds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/web"
)

// ResourceStore stores the custom resources of one kind in one site's namespace. Other clients
// write them too. Errors: those of package store, fielderror.Errors.
type ResourceStore interface {
	// Get returns the current resource, including writes of other clients.
	Get(ctx context.Context, id string) (webhook.Resource, error)
	// List returns all resources in no particular order.
	List(ctx context.Context) ([]webhook.Resource, error)
	// Create creates a resource. For a webhook, secret is its new signing secret, which only Create and
	// Rotate return; otherwise it is empty.
	// Errors: *store.PreconditionError if a resource has the id.
	Create(ctx context.Context, resource webhook.Resource) (made webhook.Resource, secret string, err error)
	// Change edits the current resource. It calls edit again after each write conflict. It does not
	// change the URL of a webhook that sends header fields from a Secret. Errors: fielderror.Errors.
	Change(ctx context.Context, id string, edit Edit) (webhook.Resource, error)
	// Delete deletes the current resource if check returns nil.
	Delete(ctx context.Context, id string, check func(webhook.Resource) error) error
}

// Edit returns a resource with changed content or service data.
type Edit = func(webhook.Resource) (webhook.Resource, error)

// WebhookStore is a ResourceStore of webhooks, which have secrets.
type WebhookStore interface {
	ResourceStore
	// Rotate replaces the secret of a webhook if check returns nil. Deliveries are signed with the
	// previous secret too until the given time.
	Rotate(ctx context.Context, id string, until time.Time, check func(webhook.Resource) error) (rotated webhook.Resource, secret string, err error)
}

// ResourceGroup is the API group of the custom resources.
const ResourceGroup = "paddock.health"

// CustomResources are the Kubernetes RBAC resources of ResourceGroup that this facade serves.
var CustomResources = []string{webhookEvents.resource, webhooks.resource}

// resourceKind describes one kind of custom resource to the handlers.
type resourceKind struct {
	segment, resource, idField string
	fields                     schema.Fields
	lists                      list.Options[webhook.Test]
	of                         func(DataStore) ResourceStore
	// guard returns an error if a caller with the right to write the resource may not give it the
	// content. If nil, every content is allowed.
	guard func(r *request, next schema.Content) error
}

var webhookEvents = &resourceKind{
	segment: "webhook-event", resource: "webhookevents", idField: webhook.EventIDField,
	fields: webhook.EventFields, lists: webhook.EventLists,
	of: func(s DataStore) ResourceStore { return s.WebhookEvents },
}

var webhooks = &resourceKind{
	segment: "webhook", resource: "webhooks", idField: webhook.IDField,
	fields: webhook.Fields, lists: webhook.Lists,
	of: func(s DataStore) ResourceStore { return s.Webhooks },

	guard: guardClearance,
}

// guardClearance returns an error if the webhook has ClearancePrivileged and the caller may not see
// all records. Every change of the content of such a webhook requires this right, except a change
// that removes the clearance.
func guardClearance(r *request, next schema.Content) error {
	if next.Text("clearance") != webhook.ClearancePrivileged {
		return nil
	}
	return r.site.Privileged(r.Context())
}

type resourceOperation = func(http.ResponseWriter, *request, *resourceKind) error

// routeResources registers the paths of a kind. Contract 4.2.
func (h *handler) routeResources(site paths, k *resourceKind) {
	may := func(verb string, run resourceOperation) operation {
		return operation{verb: verb, group: ResourceGroup, resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return run(w, r, k) }}
	}
	site.add("/"+k.segment, methods{
		http.MethodGet:  may("list", h.listResources),
		http.MethodPost: may("create", h.createResource),
	})
	site.add("/"+k.segment+"/{id}", methods{
		http.MethodGet:    may("get", h.readResource),
		http.MethodPut:    may("update", h.replaceResource),
		http.MethodPatch:  may("patch", h.patchResource),
		http.MethodDelete: may("delete", h.deleteResource),
	})
}

// routeWebhooks registers the further operations of webhooks.
func (h *handler) routeWebhooks(site paths) {
	site.add("/"+webhooks.segment+"/{id}/rotate-secret", methods{
		http.MethodPost: {verb: "update", group: ResourceGroup, resource: webhooks.resource, run: h.rotateSecret},
	})
}

// resourceTag returns the ETag of a resource. It changes with the spec only. The hash of the UID
// distinguishes resources that had the same id one after the other.
func resourceTag(resource webhook.Resource) web.ETag {
	return tagOf(resource.Generation, resource.UID)
}

// render returns the JSON of a resource. The secret is included unless it is empty.
func (k *resourceKind) render(resource webhook.Resource, secret string) []byte {
	w := schema.NewWriter(nil)
	w.String(k.idField, resource.ID)
	k.fields.Append(w, resource.Content)
	writeVerification(w, resource, secret)
	if !resource.DisabledAt.IsZero() {
		w.String("disabledAt", schema.Stamp(resource.DisabledAt))
		w.String("disabledReason", resource.DisabledReason)
	}
	w.String("createdAt", schema.Stamp(resource.Created))
	w.String("updatedAt", schema.Stamp(resource.Updated))
	return w.Done()
}

// writeVerification writes what verifies the signatures of a webhook. The secret is included unless it
// is empty.
func writeVerification(to *schema.Writer, resource webhook.Resource, secret string) {
	if secret != "" {
		to.String("secret", secret)
	}
	if resource.PublicKey != "" {
		to.String("publicKey", resource.PublicKey)
	}
	if !resource.PreviousUntil.IsZero() {
		to.String("previousSecretUntil", schema.Stamp(resource.PreviousUntil))
	}
}

// respondResource writes a resource as the response.
func (r *request) respondResource(w http.ResponseWriter, status int, k *resourceKind, resource webhook.Resource, secret string) error {
	setResourceVersion(w, resource)
	return r.respond(w, status, typeJSON, k.render(resource, secret))
}

func setResourceVersion(w http.ResponseWriter, resource webhook.Resource) {
	web.SetVersion(w.Header(), resourceTag(resource), resource.Updated)
}

// serviceDataOf returns the service data of a resource. Data that is not valid, which another
// client can have written, is ignored.
func serviceDataOf(resource webhook.Resource) serviceData {
	var own serviceData
	if json.Unmarshal([]byte(resource.ServiceData), &own) != nil {
		return serviceData{}
	}
	return own
}

// encode returns the service data as JSON.
func (own serviceData) encode() (string, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return "", fmt.Errorf("encode the service data of a resource: %w", err)
	}
	return string(text), nil
}

// listResources serves GET …/{kind}.
func (h *handler) listResources(w http.ResponseWriter, r *request, k *resourceKind) error {
	asked, err := list.Parse(r.query, k.lists)
	if err != nil {
		return err
	}
	all, err := k.of(r.site).List(r.Context())
	if err != nil {
		return err
	}
	page, total := webhook.Page(all, asked)
	items := make([]jsontext.Value, len(page))
	for i, resource := range page {
		items[i] = k.render(resource, "")
	}
	return r.respond(w, http.StatusOK, typeJSON, asked.Envelope(items, total))
}

// readResource serves GET …/{kind}/{id}.
func (h *handler) readResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	resource, err := k.of(r.site).Get(r.Context(), r.id)
	if err != nil {
		return err
	}
	unchanged, err := web.IsNotModified(r.Header, etagSyntax, resourceTag(resource), resource.Updated)
	if err != nil {
		return err
	}
	if unchanged {
		setResourceVersion(w, resource)
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respondResource(w, http.StatusOK, k, resource, "")
}
