package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster"
	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// child is a writer on the engine, inside its own process.
type child struct {
	site   store.Store
	faults *faultyTransport

	mu      sync.Mutex
	current fault
	tell    *json.Encoder
}

// engineLimits keep every version.
var engineLimits = cluster.Limits{MaxRecords: 20000, MaxVersions: 1000, MaxObjectBytes: 1 << 20, MaxBytes: 512 << 20}

// beChild does tasks until there are no more.
func beChild(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	c := &child{tell: json.NewEncoder(os.Stdout), faults: &faultyTransport{}}
	c.faults.struck = func() { c.say(message{Event: struck}) }
	config.Wrap(c.faults.wrap)
	engine, err := cluster.New(config, cluster.Options{AfterStep: c.afterStep})
	if err != nil {
		return err
	}
	go engine.Run(ctx)
	<-engine.Synced()
	c.site = engine.Open(os.Getenv(childNamespace), os.Getenv(childSiteKey), engineLimits)
	c.say(message{Event: ready})
	tasks := json.NewDecoder(os.Stdin)
	for {
		var next task
		if err := tasks.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		c.say(c.do(ctx, next))
	}
}

func (c *child) say(m message) {
	c.mu.Lock()
	err := c.tell.Encode(m)
	c.mu.Unlock()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tell:", err)
		os.Exit(1)
	}
}

// do does a task, with the fault that goes with it.
func (c *child) do(ctx context.Context, t task) message {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.arm(t.Fault, cancel)
	var m message
	if t.Kind == history.Read {
		m = c.read(ctx, t)
	} else {
		m = c.write(ctx, t)
	}
	c.arm(fault{}, nil)
	m.Event = done
	return m
}

func (c *child) arm(f fault, cancel context.CancelFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current = f
	c.faults.arm(f, cancel)
}

// afterStep is where the process dies or falls asleep: in its task, or in what the
// engine does beside it to finish what others left.
func (c *child) afterStep(step string) {
	c.mu.Lock()
	due := c.current
	if due.Step == step {
		c.current = fault{}
	}
	c.mu.Unlock()
	if due.Step != step {
		return
	}
	c.say(message{Event: struck})
	signal := syscall.SIGKILL
	if due.Do == sleep {
		signal = syscall.SIGSTOP
	}
	_ = syscall.Kill(os.Getpid(), signal)
}

func (c *child) read(ctx context.Context, t task) message {
	key := store.Key{Type: patients.name, ID: t.Record}
	if t.Whole {
		versions, err := readHistory(ctx, c.site, key)
		return message{Outcome: outcomeOf(err), Said: saidOf(err), Versions: versions}
	}
	record, err := c.site.Get(ctx, key)
	var gone *store.DeletedError
	if errors.As(err, &gone) {
		return message{Outcome: history.Unknown, Said: "deleted"} // of which life it does not tell
	}
	if err != nil {
		return message{Outcome: outcomeOf(err), Said: saidOf(err)}
	}
	seen := versionOf(record)
	return message{Outcome: history.Acknowledged, Said: "ok", Version: seen.Number, UID: seen.UID, Token: seen.Token}
}

func (c *child) write(ctx context.Context, t task) message {
	op := store.Op{Key: store.Key{Type: patients.name, ID: t.Record}}
	switch t.Kind {
	case history.Put:
		op.Kind, op.Method, op.Body = store.Put, store.MethodPut, storedBody(t.Token)
		if t.Lines != nil {
			op.Claims = []store.Claim{} // to give up what is not listed
		}
		for _, line := range t.Lines {
			op.Claims = append(op.Claims, store.Claim{Line: line})
		}
	case history.Delete:
		op.Kind, op.Method = store.Delete, store.MethodDelete
	case history.Purge:
		op.Kind = store.Purge
	}
	results, err := c.site.Write(ctx, []store.Op{op})
	if err != nil {
		return message{Outcome: outcomeOf(err), Said: saidOf(err)}
	}
	result := results[0]
	return message{
		Outcome: history.Acknowledged, Said: "ok", Version: result.Record.Version, UID: result.Record.UID, Deleted: result.Record.Deleted,
		Made: t.Kind == history.Put || t.Kind == history.Delete && result.Outcome == store.Removed,
	}
}

// outcomeOf tells what an error of the store means for the operation.
func outcomeOf(err error) history.Outcome {
	var claimed *store.ClaimError
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
		return history.Acknowledged
	case errors.As(err, &claimed):
		return history.Refused
	default:
		return history.Unknown
	}
}

func saidOf(err error) string {
	var claimed *store.ClaimError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	case errors.As(err, &claimed):
		return "claimed"
	case errors.Is(err, store.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "hung up"
	default:
		return err.Error()
	}
}

// storedBody is a body as the facade hands it to the store.
func storedBody(token string) store.Body {
	const id, meta = `"id":"`, `"meta":{`
	body := bytes.Replace(patients.body("", token, ""), []byte(`"identifier"`), []byte(id+`",`+meta+`},"identifier"`), 1)
	return store.Body{
		JSON:       body,
		IDOffset:   strings.Index(string(body), id) + len(id),
		MetaOffset: strings.Index(string(body), meta) + len(meta),
	}
}

// versionOf reads a version back.
func versionOf(r store.Record) history.Version {
	if r.Deleted {
		return history.Version{Number: r.Version, UID: r.UID, Deleted: true, Updated: r.Updated}
	}
	raw := r4.AppendJSON(nil, r.Body.JSON, r.Body.IDOffset, r.Body.MetaOffset, r.Key.ID, r.Version, r.Updated)
	_, v := patients.version(raw)
	v.UID = r.UID
	if v.Damage == "" && v.Number != r.Version {
		v.Damage = "its version is " + strconv.FormatInt(v.Number, 10)
	}
	v.Number, v.Updated = r.Version, r.Updated
	return v
}

// readHistory reads all versions, oldest first; none when there is no such record.
func readHistory(ctx context.Context, site store.Store, key store.Key) ([]history.Version, error) {
	page, err := site.History(ctx, store.HistoryQuery{Key: key, Deletions: true, Count: engineLimits.MaxVersions + 1})
	if err != nil {
		return nil, err
	}
	versions := make([]history.Version, len(page.Records))
	for i, record := range page.Records {
		versions[i] = versionOf(record)
	}
	slices.Reverse(versions)
	return versions, nil
}
