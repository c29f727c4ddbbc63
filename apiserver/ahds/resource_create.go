package ahds

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/ahds/list"
	"github.com/paddock-health/paddock/apiserver/ahds/schema"
	"github.com/paddock-health/paddock/apiserver/ahds/webhook"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// createResource serves POST …/{kind}. A request that is repeated with the same id or
// Idempotency-Key creates nothing. It gets the existing resource in its current state, without the
// secret.
func (h *handler) createResource(w http.ResponseWriter, r *request, k *resourceKind) error {
	if err := list.ParseNone(r.query); err != nil {
		return err
	}
	key, err := r.idempotencyKey()
	if err != nil {
		return err
	}
	sent, _, err := r.readObject(w, typeJSON)
	if err != nil {
		return err
	}
	content, id, err := k.fields.Create(sent, schema.Identity{Name: k.idField})
	if err != nil {
		return err
	}
	if k.guard != nil {
		if err := k.guard(r, content); err != nil {
			return err
		}
	}
	key.request = k.fingerprint(content)
	wanted := webhook.Resource{ID: strings.ToLower(id), Content: content}
	if wanted.ServiceData, err = (serviceData{Fingerprint: key.request, Keys: key.addTo(nil, 1, h.Now())}).encode(); err != nil {
		return err
	}
	made, secret, created, err := h.makeResource(r, k, wanted, key)
	if err != nil {
		return err
	}
	w.Header().Set("Location", r.site.BaseURL+"/"+k.segment+"/"+made.ID)
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return h.respondWrittenResource(w, r, status, k, made, secret, false)
}

// fingerprint returns a hash of a content.
func (k *resourceKind) fingerprint(content schema.Content) string {
	w := schema.NewWriter(nil)
	k.fields.Append(w, content)
	return digest([]byte(k.segment), w.Done())
}

// makeResource creates a resource, or returns the resource that the same request created before.
// Errors: *idTakenError, *keyReusedError, those of ResourceStore.
func (h *handler) makeResource(r *request, k *resourceKind, wanted webhook.Resource, key idempotencyKey) (made webhook.Resource, secret string, created bool, err error) {
	chosen := wanted.ID != ""
	made, found, err := k.madeWith(r, wanted.ID, key, h.Now())
	if err != nil || found {
		return made, "", false, err
	}
	if !chosen {
		if wanted.ID, err = k.newID(r, key, ""); err != nil {
			return webhook.Resource{}, "", false, err
		}
	}
	for {
		made, secret, err = k.of(r.site).Create(r.Context(), wanted)
		if !store.IsConflict(err) {
			return made, secret, true, err
		}
		made, err = k.of(r.site).Get(r.Context(), wanted.ID)
		switch {
		case store.IsAbsent(err): // the resource was deleted after Create conflicted with it
			if err := web.Sleep(r.Context(), poll); err != nil {
				return webhook.Resource{}, "", false, err
			}
			continue
		case err == nil && !chosen && h.Now().Sub(made.Created) >= keyLife: // the key has expired
			if wanted.ID, err = k.newID(r, key, made.UID); err != nil {
				return webhook.Resource{}, "", false, err
			}
			continue
		case err != nil || serviceDataOf(made).Fingerprint == key.request:
		case chosen && made.Generation == 1 && sameValue(k.fields, made.Content, wanted.Content): // not changed since its creation
		case chosen:
			err = &idTakenError{id: wanted.ID}
		default:
			err = &keyReusedError{}
		}
		return made, "", false, err
	}
}

// newID returns the id of a new resource. It derives the id from the idempotency key, so that a
// repeated request gets the same id even if the site's base URL has changed. Without a key the id is
// random. former is empty, or the UID of an existing resource that was created with the same key
// before the key expired.
func (k *resourceKind) newID(r *request, key idempotencyKey, former string) (string, error) {
	if key.key != "" {
		return uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paddock.health/site/"+r.site.ID+"/"+k.segment+"#"+key.key+former)).String(), nil
	}
	id, err := uuid.NewV7()
	return id.String(), err
}

// madeWith returns the resource that the same request with the key created. It reports false if the
// key is new. id is the id that the client chose, or empty. A resource with that id is skipped,
// because it is compared when Create conflicts with it. Two concurrent requests with the same key
// and different chosen ids may both find that the key is new. Errors: *keyReusedError, those of
// ResourceStore.
func (k *resourceKind) madeWith(r *request, id string, key idempotencyKey, now time.Time) (made webhook.Resource, found bool, err error) {
	if key.key == "" {
		return webhook.Resource{}, false, nil
	}
	all, err := k.of(r.site).List(r.Context())
	if err != nil {
		return webhook.Resource{}, false, err
	}
	for _, other := range all {
		if other.ID == id {
			continue
		}
		_, used, err := key.usedIn(liveKeys(serviceDataOf(other).Keys, now))
		if used && id != "" {
			err = &keyReusedError{}
		}
		if used || err != nil {
			return other, true, err
		}
	}
	return webhook.Resource{}, false, nil
}
