package audit

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/paddock-health/paddock/apiserver/store"
)

// WithWrites is a Storage of which the store of the Site's records stores the entry of a write in the
// transaction of the write (WriteEntryOf).
type WithWrites interface {
	Storage
	StoresWithWrites()
}

// WriteEntry makes the entry of a request that writes one record, before the write and as it is if the
// request succeeds. If the finished request has another entry, the Log stores that one too. The methods do
// nothing on a nil *WriteEntry, and may be called by another goroutine than that of the request.
type WriteEntry struct{ recorder *Recorder }

type writeEntryKey struct{}

// WriteEntryOf returns the WriteEntry of a Write with this context, or nil if the Log stores the entry.
func WriteEntryOf(ctx context.Context) *WriteEntry {
	w, _ := ctx.Value(writeEntryKey{}).(*WriteEntry)
	return w
}

// WithoutWriteEntry returns a context for a Write whose entry the Log stores.
func WithoutWriteEntry(ctx context.Context) context.Context {
	return context.WithValue(ctx, writeEntryKey{}, (*WriteEntry)(nil))
}

// withWriteEntry returns the context for a Write of one record. A WriteEntry is in it if the entry can be
// stored with the write, and no earlier write of the request stored it.
func (r *Recorder) withWriteEntry(ctx context.Context) context.Context {
	if r == nil {
		return ctx
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.writes || r.auditor == nil || r.storedEntry != nil || !r.site.Log.storesWithWrites() {
		return ctx
	}
	return context.WithValue(ctx, writeEntryKey{}, &WriteEntry{r})
}

// Make returns the entry of the request if its write of a record has an outcome. It returns nil if that
// outcome has no status (Recorder.Statuses).
func (w *WriteEntry) Make(key store.Key, outcome store.Outcome) *Entry {
	if w == nil {
		return nil
	}
	r := w.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry
	if e.Status = r.statuses[outcome]; e.Status == 0 {
		return nil
	}
	e.Time, e.ID = r.auditor.Now().UTC().Truncate(time.Microsecond), newID()
	written := recordList{texts: slices.Clone(r.written.texts), n: r.written.n, repeats: true}
	written.add(key)
	e.Records = r.recordsWith(&written)
	return &e
}

// Stored notes that an entry was stored with the write, and adds it to the Auditor's Lines. json is the
// entry as JSON (Entry.JSON).
func (w *WriteEntry) Stored(e *Entry, json []byte) {
	if w == nil || e == nil {
		return
	}
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	w.recorder.storedEntry = e
	w.recorder.auditor.Lines.addJSON(json)
}

// isStored reports whether the first entry of the finished request was stored with its write. If a request
// has several entries, the first differs from the stored one.
func (r *Recorder) isStored(entries []*Entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.storedEntry == nil {
		return false
	}
	return entries[0].isLike(r.storedEntry)
}

// isLike reports whether two entries are equal, except for Time and ID.
func (e *Entry) isLike(other *Entry) bool {
	return e.Site == other.Site && e.Request == other.Request && e.Correlation == other.Correlation &&
		e.Caller == other.Caller && e.Subject == other.Subject && e.Issuer == other.Issuer && e.Address == other.Address &&
		e.API == other.API && e.Interaction == other.Interaction && e.Action == other.Action && e.Method == other.Method &&
		e.Type == other.Type && e.Records == other.Records && e.Status == other.Status && e.Rule == other.Rule &&
		e.BreakGlass == other.BreakGlass && e.Requests == other.Requests && slices.Equal(e.Parameters, other.Parameters)
}

// requestIDs returns Entry.Request and Entry.Correlation for the header of a response.
func requestIDs(header http.Header) (id, correlation string) {
	id, correlation = cmp.Or(header.Get("X-Request-Id"), header.Get("Audit-Id")), header.Get("X-Correlation-Id")
	if correlation == id {
		correlation = ""
	}
	return id, correlation
}
