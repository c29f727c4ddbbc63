package audit

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-health/paddock/apiserver/access"
	"github.com/paddock-health/paddock/apiserver/store"
)

// Sink is where the audit entries of a Site's requests are stored. ID is the siteID.
type Sink struct {
	ID string
	// Log is the log of the Site. It is nil while the Site's storage is not open; entries are then
	// only written to Auditor.Lines.
	Log *Log
}

// Recorder collects the content of the audit entries of one request. Its methods are safe for
// concurrent use, and do nothing on a nil *Recorder.
type Recorder struct {
	mu    sync.Mutex
	entry Entry
	site  Sink
	// read and written are the records that the store returned and wrote.
	read, written recordList
	// writes reports whether the action of the request is a create, update or delete, and wrote
	// whether the store was called to write.
	writes, wrote bool
	// skipped reports whether the request accesses no records.
	skipped bool
	// concealed reports whether the response must not reveal that the Site exists.
	concealed bool
	// parts are the Recorders of a Bundle's entries.
	parts []*Recorder
	done  bool
	// statuses are those of Statuses. storedEntry is the entry that was stored with the write of the
	// request, or nil.
	statuses    map[store.Outcome]int
	storedEntry *Entry
	auditor     *Auditor
}

type recorderKey struct{}

// From returns the Recorder in the context of a request, or nil if there is none.
func From(ctx context.Context) *Recorder {
	r, _ := ctx.Value(recorderKey{}).(*Recorder)
	return r
}

// Without returns a context without the Recorder, for reads whose records are not in any response.
func Without(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, (*Recorder)(nil))
}

// with returns a context with the Recorder.
func (r *Recorder) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, recorderKey{}, r)
}

// saneID matches the siteIDs that are recorded for a Site without a log, which may not exist. Any
// other text in the place of a siteID is omitted.
var saneID = regexp.MustCompile(`^[A-Za-z0-9.-]{1,64}$`)

// At sets the Site of the request and the Sink of its entries.
func (r *Recorder) At(site Sink) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.site = site
	if site.Log != nil || saneID.MatchString(site.ID) {
		r.entry.Site = site.ID
	}
}

// maxName is the maximum length in bytes of a recorded caller's name. Longer names are cut.
const maxName = 512

// Caller sets the caller of the request.
func (r *Recorder) Caller(caller access.Caller) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.ReplaceAll(caller.Name[:min(len(caller.Name), maxName)], "\x00", "")
	r.entry.Caller = strings.ToValidUTF8(name, "") // Postgres refuses invalid UTF-8
	r.entry.Issuer = caller.Issuer
	switch {
	case caller.Issuer != "":
		r.entry.Subject = IssuedSubject
	case strings.HasPrefix(caller.Name, "system:serviceaccount:"):
		r.entry.Subject = ServiceAccount
	case caller.Name != "":
		r.entry.Subject = User
	}
}

// Interaction sets the interaction and action of the request, and its record type or record. key.ID
// must be empty or valid.
func (r *Recorder) Interaction(name string, action Action, key store.Key) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry.Interaction, r.entry.Action, r.entry.Type, r.skipped = name, action, key.Type, false
	r.writes = action == Create || action == Update || action == Delete
	if key.ID != "" {
		r.entry.Records = Records(key.Type + "/" + key.ID)
	}
}

// Statuses sets the status of the response for each outcome of a request that writes one record. An
// engine may then store the entry with the write (WriteEntry).
func (r *Recorder) Statuses(statuses map[store.Outcome]int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.statuses = statuses
}

// Skip keeps the request out of the log, unless the request is denied or Interaction is called later.
// Skip does not check that the request accesses no records: the caller must ensure that.
func (r *Recorder) Skip() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skipped = true
}

// Conceal sets whether the response must not reveal that the Site exists. Such a response must have
// the content and timing of a response for a Site that does not exist, which has no log. The response
// therefore does not wait until its audit entry is stored, and is sent even if the entry cannot be
// stored.
func (r *Recorder) Conceal(conceal bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.concealed = conceal
}

// AddRead adds records that the request has read.
func (r *Recorder) AddRead(keys ...store.Key) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read.repeats = true
	for _, key := range keys {
		r.read.add(key)
	}
}

// addReadPage is AddRead for the records of a page. distinct reports whether records has no
// duplicates.
func (r *Recorder) addReadPage(records, included []store.Record, distinct bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read.repeats = r.read.repeats || !distinct || r.read.n+len(included) > 0
	r.read.addPage(records)
	r.read.addPage(included)
}

// AddWritten adds records that the request has written or has tried to write.
func (r *Recorder) AddWritten(keys ...store.Key) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written.repeats, r.wrote = true, r.wrote || len(keys) > 0
	for _, key := range keys {
		r.written.add(key)
	}
}

// Wrote notes that the request may have written records, without naming them. AddWritten implies
// it.
func (r *Recorder) Wrote() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote = true
}

// Deny sets Entry.Rule: the rule that denies the request.
func (r *Recorder) Deny(rule string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry.Rule = rule
}

// NamesParameters reports whether the entries of the request record the names of its parameters.
func (r *Recorder) NamesParameters() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.site.Log != nil && r.site.Log.namesParameters()
}

// Parameters adds names of the request's parameters, if NamesParameters is true. The names must be
// names that the API defines, because a client can put a value in the place of an unknown name.
func (r *Recorder) Parameters(names ...string) {
	if !r.NamesParameters() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry.Parameters = append(r.entry.Parameters, names...)
}

// Part returns a context with a new Recorder for one entry of a Bundle. The audit entries of that
// Recorder are stored together with those of the whole request. Part returns ctx if ctx has no
// Recorder.
func Part(ctx context.Context, method string) context.Context {
	r := From(ctx)
	if r == nil {
		return ctx
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	part := &Recorder{entry: r.entry, site: r.site}
	part.entry.Method, part.entry.Records, part.entry.Parameters, part.entry.Type = method, "", nil, ""
	part.entry.Interaction, part.entry.Action = "", ""
	r.parts = append(r.parts, part)
	return part.with(ctx)
}

// Status sets the HTTP status of the response to one entry of a Bundle.
func (r *Recorder) Status(status int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry.Status = status
}

// Ready returns ErrUnavailable while the Site's log fails, unless Settings.Continue is set.
func (r *Recorder) Ready() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.site.Log == nil {
		return nil
	}
	return r.site.Log.ready()
}

// maxRecords is how many records one entry has at most. A request with more gets several entries.
const maxRecords = 500

// finish returns the entries of a request with the status of its response. Later calls return none.
// durable reports whether the response must wait until they are stored.
func (r *Recorder) finish(status int, now time.Time) (entries []*Entry, durable bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return nil, false
	}
	r.done = true
	if r.skipped && !isDenial(status) {
		return nil, false
	}
	now = now.UTC().Truncate(time.Microsecond)
	r.entry.Status = status
	durable = isDenial(status) || r.writes || r.wrote || r.entry.BreakGlass
	records := r.records()
	if len(r.parts) == 0 {
		return r.split(nil, records, now), durable
	}
	known := map[string]bool{}
	for _, part := range r.parts {
		part.entry.Status = cmp.Or(part.entry.Status, status)
		part.entry.BreakGlass = r.entry.BreakGlass
		durable = durable || part.writes || part.wrote || isDenial(part.entry.Status)
		ofPart := part.records()
		for record := range ofPart.All() {
			known[record] = true
		}
		entries = part.split(entries, ofPart, now)
	}
	// Records of a part are only in the part's entry.
	own := slices.DeleteFunc(slices.Collect(records.All()), func(record string) bool { return known[record] })
	return r.split(entries, RecordsOf(own...), now), durable
}

// isDenial reports whether a status means that the caller, a right, a record or the Site is
// missing.
func isDenial(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden || status == http.StatusNotFound
}

// records returns the records of the entry, each once: that of the path, and those written or, if
// there are none, those read.
func (r *Recorder) records() Records {
	if r.written.n == 0 {
		return r.recordsWith(&r.read)
	}
	return r.recordsWith(&r.written)
}

// recordsWith returns the record of the path and those of a list, each once.
func (r *Recorder) recordsWith(list *recordList) Records {
	records := list.records()
	switch {
	case r.entry.Records == "" && (list.n < 2 || !list.repeats):
		return records
	case r.entry.Records == "":
		return records.distinct(list.n)
	case list.n == 0, list.n == 1 && isSame(string(r.entry.Records), string(records)):
		return r.entry.Records
	default:
		return RecordsOf(string(r.entry.Records), string(records)).distinct(list.n + 1)
	}
}

// split appends the entry with its records, as several entries if there are more than maxRecords.
func (r *Recorder) split(entries []*Entry, records Records, now time.Time) []*Entry {
	switch r.entry.Status {
	case http.StatusUnauthorized:
		r.entry.Rule = cmp.Or(r.entry.Rule, "token")
	case http.StatusForbidden:
		r.entry.Rule = cmp.Or(r.entry.Rule, RuleRBAC)
	}
	r.entry.Time = now
	for {
		entry := r.entry
		entry.ID = newID()
		entry.Records, records = records.cut(maxRecords)
		entries = append(entries, &entry)
		if records == "" {
			return entries
		}
	}
}
