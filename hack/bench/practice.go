package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-health/paddock/hack/dev/localpostgres"
	"github.com/paddock-health/paddock/hack/dev/localreceiver"
)

const (
	// practiceRecords and practiceSlots are the numbers of Patients and slots that a practice has.
	practiceRecords, practiceSlots = 2000, 500
	// practiceEvent is the type of the events for the webhook of a practice.
	practiceEvent = "appointment.created"
	// practicePerson is the resource and the location of all slots.
	practicePerson = "9b2f6a34-5c1d-4a08-8f4e-2d7c61b0e953"
)

// practice is a Site and its client. The number of its records, deleted ones included, does not grow.
type practice struct {
	storage, namespace string
	fhir, ahds         *site
	// passing creates the Patients that are deleted and then purged. deleted and purged are the
	// numbers of its Patients that were deleted and purged.
	passing         *site
	deleted, purged atomic.Int64
	slots           []string
	fan             *fan
	published       atomic.Int64
	// delivered is the number of deliveries that takeDelivered has taken from the receiver.
	delivered int
}

// openPractices fills a Site in etcd-backed storage and one in Postgres, unless o.only selects one of
// them. The server of Postgres is started in any case. The caller must stop the server if it is not
// nil, also after an error.
func openPractices(ctx context.Context, o options, in installation, dir string) (practices []*practice, server *localpostgres.Server, err error) {
	if server, err = startDatabase(ctx, in, filepath.Join(dir, "postgres")); err != nil {
		return nil, nil, err
	}
	for _, of := range []struct{ storage, namespace string }{{"etcd", "demo"}, {"Postgres", databaseSite}} {
		if !strings.Contains(strings.ToLower(of.storage), o.only) {
			continue
		}
		if _, err := in.paddock.Kubectl(ctx, "create", "rolebinding", "administrator", "-n", of.namespace, "--clusterrole=paddock-admin", "--serviceaccount="+of.namespace+":editor"); err != nil {
			return nil, server, err
		}
		token, err := in.paddock.Token(ctx, of.namespace, "editor", "paddock.health/"+of.namespace+"/"+of.namespace, 4*time.Hour)
		if err != nil {
			return nil, server, err
		}
		base := in.paddock.URLs[0] + "/site/" + of.namespace
		p := &practice{storage: of.storage, namespace: of.namespace, fhir: newSite(base+"/fhir", token), ahds: newSite(base+"/ahds/v1", token)}
		p.ahds.client, p.passing = p.fhir.client, &site{base: p.fhir.base, token: token, client: p.fhir.client}
		if err := p.fill(ctx, in); err != nil {
			return nil, server, fmt.Errorf("%s: %w", of.storage, err)
		}
		practices = append(practices, p)
	}
	return practices, server, nil
}

// fill creates the records, the slots and the webhook of a practice.
func (p *practice) fill(ctx context.Context, in installation) error {
	group, filling := errgroup.WithContext(ctx)
	group.SetLimit(fleetCreators)
	for n := range practiceRecords {
		group.Go(func() error { return p.fhir.create(filling, n) })
	}
	p.slots = make([]string, practiceSlots)
	for n := range p.slots {
		group.Go(func() (err error) {
			p.slots[n], err = p.createSlot(filling, n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.fan = &fan{eventType: practiceEvent, size: 1}
	return (&deliveriesBench{in: in, namespace: p.namespace}).openFan(ctx, p.fan)
}

// createSlot creates a slot in the n-th hour, and returns its id.
func (p *practice) createSlot(ctx context.Context, n int) (string, error) {
	at := time.Date(2031, time.March, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Hour)
	text := fmt.Appendf(nil, `{"startAt":%q,"endAt":%q,"locationId":%[3]q,"resourceId":%[3]q}`, at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339), practicePerson)
	answer, err := p.ahds.send(ctx, http.MethodPost, "/availability-slot", text, http.StatusCreated)
	if err != nil {
		return "", err
	}
	var slot struct {
		ID string `json:"availabilitySlotId"`
	}
	err = json.Unmarshal(answer, &slot)
	return slot.ID, err
}

// receiver returns the receiver of the practice's webhook.
func (p *practice) receiver() *localreceiver.Receiver { return p.fan.receivers[0] }

// practiceWrites is the share of requests that write: the writes of Patients, the changed slot and
// the event.
const practiceWrites = 9.0 / 20

// request sends the n-th request. Of twenty, seven read Patients by id, three search for them, seven
// write them, one lists slots, one changes a slot and one publishes an event. Consecutive changes go
// to different Patients and slots, so that few requests change the same record at once.
func (p *practice) request(ctx context.Context, n int) error {
	slot := "/availability-slot/" + p.slots[n/20%len(p.slots)]
	switch n % 20 {
	case 0:
		return p.passing.create(ctx, n)
	case 1:
		if id := p.oldest(&p.deleted, math.MaxInt64); id != "" {
			return p.fhir.do(ctx, http.MethodDelete, "/patient/"+id, nil, http.StatusOK)
		}
		return p.fhir.read(ctx, n)
	case 2:
		if id := p.oldest(&p.purged, p.deleted.Load()); id != "" {
			return p.fhir.do(ctx, http.MethodPost, "/patient/"+id+"/$purge", nil, http.StatusOK)
		}
		return p.fhir.read(ctx, n)
	case 4, 5, 6, 7:
		return p.fhir.update(ctx, n/20*4+n%20)
	case 8:
		return p.fhir.do(ctx, http.MethodGet, fmt.Sprintf("/patient?_total=none&identifier=P-%07d", n%practiceRecords), nil, http.StatusOK)
	case 9:
		return p.fhir.do(ctx, http.MethodGet, "/patient?_total=none&_count=20&family=okaf", nil, http.StatusOK)
	case 10:
		return p.fhir.do(ctx, http.MethodGet, "/patient?_total=none&_count=20", nil, http.StatusOK)
	case 11:
		return p.ahds.do(ctx, http.MethodGet, "/availability-slot?pageSize=20&resourceId="+practicePerson, nil, http.StatusOK)
	case 12:
		return p.ahds.do(ctx, http.MethodPatch, slot, fmt.Appendf(nil, `{"notes":"change %d"}`, n), http.StatusOK)
	case 13:
		text := fmt.Appendf(nil, `{"type":%q,"subject":"%d","data":{"resourceType":"Patient","id":"p-%d"}}`, practiceEvent, n, n)
		err := p.ahds.do(ctx, http.MethodPost, "/event", text, http.StatusAccepted)
		if err == nil {
			p.published.Add(1)
		}
		return err
	default:
		return p.fhir.read(ctx, n)
	}
}

// oldest takes the oldest passing Patient that is not yet taken, and returns its id. taken is the
// number of Patients that are taken. oldest returns an empty string if all of the first limit Patients
// are taken.
func (p *practice) oldest(taken *atomic.Int64, limit int64) string {
	p.passing.mu.Lock()
	defer p.passing.mu.Unlock()
	next := taken.Load()
	if next >= min(limit, int64(len(p.passing.ids))) {
		return ""
	}
	taken.Add(1)
	return p.passing.ids[next]
}

// capacity returns the requests per second that o.clients clients reach, each with one request
// under way.
func (p *practice) capacity(ctx context.Context, o options) (float64, error) {
	next := map[string]int{}
	w := workload{p.storage, p.request}
	if _, _, err := takeTurn(ctx, o, w, next); err != nil { // it warms caches and connections
		return 0, err
	}
	t, _, err := takeTurn(ctx, o, w, next)
	return t.perSecond, err
}

// takeDelivered takes the deliveries that have arrived since its last call from the receiver, and
// counts them.
func (p *practice) takeDelivered() { p.delivered += len(p.receiver().Take()) }

// deliveriesTimeout is how long deliveries may take after the last request.
const deliveriesTimeout = 2 * time.Minute

// awaitDelivered waits until all published events have been delivered.
func (p *practice) awaitDelivered(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, deliveriesTimeout, true, func(context.Context) (bool, error) {
		p.takeDelivered()
		return p.delivered >= int(p.published.Load()), nil
	})
	if err != nil {
		return fmt.Errorf("%s: only %d of %d accepted events were delivered: %w", p.storage, p.delivered, p.published.Load(), err)
	}
	return nil
}
