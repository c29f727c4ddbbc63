package fhir

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/errorcode"
	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// bundleWriter writes a FHIR Bundle by appending JSON, so that resources in it keep their bytes.
type bundleWriter struct {
	json    []byte
	entries int
	// typeName is the type in the latest fullUrl. typeURL is that fullUrl as JSON, up to the id.
	typeName string
	typeURL  []byte
}

type link struct{ relation, url string }

// The approximate size in bytes of a Bundle and of an entry without resources.
const (
	bundleOverhead = 512
	entryOverhead  = 320
)

// newBundleWriter starts a Bundle. It omits the total if that is store.UnknownTotal. whole are
// records that the caller will add with all elements. newBundleWriter allocates enough memory for
// them.
func newBundleWriter(kind string, total int64, links []link, whole ...store.Record) *bundleWriter {
	size := bundleOverhead
	for _, l := range links {
		size += len(l.url)
	}
	for i := range whole {
		size += len(whole[i].Body.JSON) + entryOverhead
	}
	b := &bundleWriter{json: slices.Grow(getBuffer(), size)}
	b.text(`{"resourceType":"Bundle","type":`).quote(kind)
	if total != store.UnknownTotal {
		b.text(`,"total":`)
		b.json = strconv.AppendInt(b.json, total, 10)
	}
	for i, l := range links {
		b.text([]string{`,"link":[`, ","}[min(i, 1)])
		b.text(`{"relation":`).quote(l.relation).text(`,"url":`).quote(l.url).text("}")
	}
	if len(links) > 0 {
		b.text("]")
	}
	return b
}

// finish ends the Bundle and returns it. A Bundle without entries has no element entry, because FHIR
// forbids empty lists, unless emptyEntries wrote an empty list.
func (b *bundleWriter) finish() []byte {
	if b.entries > 0 {
		b.text("]")
	}
	return b.text("}").json
}

// startEntry writes the start of the list before the first entry, and a comma before any other.
func (b *bundleWriter) startEntry() *bundleWriter {
	if b.entries++; b.entries == 1 {
		return b.text(`,"entry":[`)
	}
	return b.text(",")
}

// emptyEntries writes an empty list of entries. It must not be combined with startEntry.
func (b *bundleWriter) emptyEntries() { b.text(`,"entry":[]`) }

// fullURL appends the URL of a record as a JSON string. A valid id needs no quoting.
func (b *bundleWriter) fullURL(r *request, key store.Key) *bundleWriter {
	if b.typeName != key.Type {
		quoted, _ := jsontext.AppendQuote(b.typeURL[:0], r.recordURL(store.Key{Type: key.Type}))
		b.typeName, b.typeURL = key.Type, quoted[:len(quoted)-1]
	}
	b.json = append(append(append(b.json, b.typeURL...), key.ID...), '"')
	return b
}

func (b *bundleWriter) text(s string) *bundleWriter {
	b.json = append(b.json, s...)
	return b
}

func (b *bundleWriter) quote(s string) *bundleWriter {
	b.json, _ = jsontext.AppendQuote(b.json, s) // the error is invalid UTF-8, which is replaced
	return b
}

func (b *bundleWriter) resource(rec store.Record, projected projection) error {
	var err error
	b.json, err = render(b.json, rec, projected)
	return err
}

// addOutcome adds an entry with issues of the search itself.
func (b *bundleWriter) addOutcome(pages errorcode.Pages, issues []r4.Issue) error {
	var err error
	b.startEntry().text(`{"resource":`)
	if b.json, err = appendOutcome(b.json, pages, issues); err != nil {
		return err
	}
	b.text(`,"search":{"mode":"outcome"}}`)
	return nil
}

// addVersion adds a version to a history. Contract 2.4; R4 http.html#history.
func (b *bundleWriter) addVersion(r *request, rec store.Record, projected projection) error {
	b.startEntry().text(`{"fullUrl":`).fullURL(r, rec.Key)
	if !rec.Deleted {
		b.text(`,"resource":`)
		if err := b.resource(rec, projected); err != nil {
			return err
		}
	}
	b.text(`,"request":{"method":`).quote(string(r.dialect.historyMethod(rec.Method)))
	b.text(`,"url":`).quote(historyURL(r, rec))
	b.text(`},"response":{"status":`).quote(historyStatus(rec))
	b.text(`,"location":`).quote(r.versionURL(rec))
	b.text(`,"etag":`).quote(etag(rec.Version).String())
	b.text(`,"lastModified":"`)
	b.json = r4.AppendInstant(b.json, rec.Updated)
	b.text(`"}}`)
	return nil
}

// historyURL returns the URL of the request that made a version, relative to the base.
func historyURL(r *request, rec store.Record) string {
	if rec.Method == store.MethodPost {
		return r.typeSegment(rec.Key.Type)
	}
	return r.recordPath(rec.Key)
}

// historyStatus returns the status of the response to the request that made a version.
func historyStatus(rec store.Record) string {
	status := http.StatusOK
	if !rec.Deleted && rec.Created.Equal(rec.Updated) {
		status = http.StatusCreated
	}
	return strconv.Itoa(status) + " " + http.StatusText(status)
}
