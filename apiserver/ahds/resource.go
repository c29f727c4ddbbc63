package ahds

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/ahds/document"
	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
)

// ResourceStore keeps the custom resources of one kind in one site's namespace, which others
// write too. Errors are those of package store, and fault.Faults.
type ResourceStore interface {
	// Get is fresh, whoever wrote.
	Get(ctx context.Context, id string) (webhook.Resource, error)
	// List has all of them, in no order.
	List(ctx context.Context) ([]webhook.Resource, error)
	// Create makes a resource. The secret is that of a webhook, and is told nowhere else.
	// Error: *store.PreconditionError, if there is one of the id.
	Create(ctx context.Context, resource webhook.Resource) (made webhook.Resource, secret string, err error)
	// Change edits a resource as it is at the moment: edit may be called more than once.
	Change(ctx context.Context, id string, edit Edit) (webhook.Resource, error)
	// Delete removes a resource as it is at the moment, if check has nothing against it.
	Delete(ctx context.Context, id string, check func(webhook.Resource) error) error
}

// Edit is what becomes of a resource: its content, and what the facade keeps with it.
type Edit = func(webhook.Resource) (webhook.Resource, error)

// WebhookStore keeps resources with secrets.
type WebhookStore interface {
	ResourceStore
	// Rotate gives a webhook another secret. The one before counts until a time.
	Rotate(ctx context.Context, id string, until time.Time, check func(webhook.Resource) error) (rotated webhook.Resource, secret string, err error)
}

// ResourceGroup is the API group of the custom resources.
const ResourceGroup = "paddock.health"

// CustomResources are those of the group that this facade serves, in the terms of
// Kubernetes RBAC.
var CustomResources = []string{webhookEvents.resource, webhooks.resource}

// resourceKind is what the handlers of custom resources need to know of one kind of them.
type resourceKind struct {
	segment, resource, idField string
	fields                     document.Fields
	lists                      list.Options[webhook.Test]
	of                         func(Site) ResourceStore
}

var webhookEvents = &resourceKind{
	segment: "webhook-event", resource: "webhookevents", idField: webhook.EventIDField,
	fields: webhook.EventFields, lists: webhook.EventLists,
	of: func(s Site) ResourceStore { return s.WebhookEvents },
}

var webhooks = &resourceKind{
	segment: "webhook", resource: "webhooks", idField: webhook.IDField,
	fields: webhook.Fields, lists: webhook.Lists,
	of: func(s Site) ResourceStore { return s.Webhooks },
}

type resourceOperation = func(http.ResponseWriter, *request, *resourceKind) error

// routeResources lists the paths of a kind. Contract 4.2.
func (h *handler) routeResources(site chi.Router, k *resourceKind) {
	may := func(verb string, run resourceOperation) operation {
		return operation{verb: verb, group: ResourceGroup, resource: k.resource, run: func(w http.ResponseWriter, r *request) error { return run(w, r, k) }}
	}
	site.Handle("/"+k.segment, h.serve(methods{
		http.MethodGet:  may("list", h.listResources),
		http.MethodPost: may("create", h.createResource),
	}))
	site.Handle("/"+k.segment+"/{id}", h.serve(methods{
		http.MethodGet:    may("get", h.readResource),
		http.MethodPut:    may("update", h.replaceResource),
		http.MethodPatch:  may("patch", h.patchResource),
		http.MethodDelete: may("delete", h.deleteResource),
	}))
}

// routeWebhooks lists what can be asked of a webhook beside.
func (h *handler) routeWebhooks(site chi.Router) {
	site.Handle("/"+webhooks.segment+"/{id}/rotate-secret", h.serve(methods{
		http.MethodPost: {verb: "update", group: ResourceGroup, resource: webhooks.resource, run: h.rotateSecret},
	}))
}

// resourceTag is the ETag of a resource, which changes with what people ask for only.
func resourceTag(resource webhook.Resource) string {
	const enough = 8 // letters tell the resources apart that had the id
	return `"` + strconv.FormatInt(resource.Generation, 10) + "-" + digest([]byte(resource.UID))[:enough] + `"`
}

// checkResource says whether a resource is at one of the versions asked for, if any is.
func (t etags) checkResource(resource webhook.Resource) error {
	if tag := resourceTag(resource); t.given && !t.matchStrong(tag) {
		return &preconditionError{current: tag}
	}
	return nil
}

// render writes a resource as clients see it.
func (k *resourceKind) render(resource webhook.Resource, secret string) []byte {
	w := document.NewWriter(nil)
	w.String(k.idField, resource.ID)
	k.fields.Append(w, resource.Content)
	if secret != "" {
		w.String("secret", secret)
	}
	if resource.PublicKey != "" {
		w.String("publicKey", resource.PublicKey)
	}
	if !resource.PreviousUntil.IsZero() {
		w.String("previousSecretUntil", document.Stamp(resource.PreviousUntil))
	}
	w.String("createdAt", document.Stamp(resource.Created))
	w.String("updatedAt", document.Stamp(resource.Updated))
	return w.Done()
}

// respondResource answers with a resource.
func (r *request) respondResource(w http.ResponseWriter, status int, k *resourceKind, resource webhook.Resource, secret string) error {
	setResourceVersion(w, resource)
	return r.respond(w, status, typeJSON, k.render(resource, secret))
}

func setResourceVersion(w http.ResponseWriter, resource webhook.Resource) {
	w.Header().Set("ETag", resourceTag(resource))
	w.Header().Set("Last-Modified", resource.Updated.UTC().Format(http.TimeFormat))
}

// keptOf reads what the facade keeps of a resource. What is not its own is nothing.
func keptOf(resource webhook.Resource) kept {
	var own kept
	if json.Unmarshal([]byte(resource.Kept), &own) != nil {
		return kept{}
	}
	return own
}

// keep makes what the facade keeps of a resource.
func (own kept) keep() (string, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return "", fmt.Errorf("encode what is kept of a resource: %w", err)
	}
	return string(text), nil
}

// listResources serves GET …/{kind}.
func (h *handler) listResources(w http.ResponseWriter, r *request, k *resourceKind) error {
	asked, err := list.Read(r.query, k.lists)
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
	if err := list.ReadNone(r.query); err != nil {
		return err
	}
	resource, err := k.of(r.site).Get(r.Context(), r.id)
	if err != nil {
		return err
	}
	unchanged, err := isNotModified(r.Header, resourceTag(resource), resource.Updated)
	if err != nil {
		return err
	}
	if unchanged {
		setResourceVersion(w, resource)
		return r.respondEmpty(w, http.StatusNotModified)
	}
	return r.respondResource(w, http.StatusOK, k, resource, "")
}
