package fhir

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/store"
)

// bundle writes a FHIR Bundle by appending, so that the resources in it stay
// byte for byte.
type bundle struct {
	json    []byte
	entries int
	// typeName is that of the latest fullUrl, which begins with typeURL.
	typeName string
	typeURL  []byte
}

// link is one of a bundle's links.
type link struct{ relation, url string }

// What a bundle has beside the resources in it, in bytes and about.
const (
	bundleOverhead = 512
	entryOverhead  = 320
)

// newBundle starts a bundle. The total is left out when it is unknown. Whole are the
// records that will be in it as they are, so that there is room for them.
func newBundle(kind string, total int64, links []link, whole ...store.Record) *bundle {
	size := bundleOverhead
	for _, l := range links {
		size += len(l.url)
	}
	for i := range whole {
		size += len(whole[i].Body.JSON) + entryOverhead
	}
	b := &bundle{json: slices.Grow(takeRoom(), size)}
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

// done ends the bundle. There is no empty list of entries, unless noEntries wrote it:
// FHIR forbids them.
func (b *bundle) done() []byte {
	if b.entries > 0 {
		b.text("]")
	}
	return b.text("}").json
}

// entry starts an entry.
func (b *bundle) entry() *bundle {
	if b.entries++; b.entries == 1 {
		return b.text(`,"entry":[`)
	}
	return b.text(",")
}

// noEntries writes the list of entries of a bundle that has none.
func (b *bundle) noEntries() { b.text(`,"entry":[]`) }

// fullURL appends the address of a record. The id needs no quoting: it has been checked.
func (b *bundle) fullURL(r *request, key store.Key) *bundle {
	if b.typeName != key.Type {
		quoted, _ := jsontext.AppendQuote(b.typeURL[:0], r.recordURL(store.Key{Type: key.Type}))
		b.typeName, b.typeURL = key.Type, quoted[:len(quoted)-1]
	}
	b.json = append(append(append(b.json, b.typeURL...), key.ID...), '"')
	return b
}

func (b *bundle) text(s string) *bundle {
	b.json = append(b.json, s...)
	return b
}

func (b *bundle) quote(s string) *bundle {
	b.json, _ = jsontext.AppendQuote(b.json, s) // what is not UTF-8 is replaced
	return b
}

// resource appends a record's resource.
func (b *bundle) resource(rec store.Record, shown part) error {
	var err error
	b.json, err = render(b.json, rec, shown)
	return err
}

// outcome adds what is to be said about the search itself.
func (b *bundle) outcome(issues []r4.Issue) error {
	var err error
	b.entry().text(`{"resource":`)
	if b.json, err = appendOutcome(b.json, issues); err != nil {
		return err
	}
	b.text(`,"search":{"mode":"outcome"}}`)
	return nil
}

// version adds a version to a history. Contract 2.4; R4 http.html#history.
func (b *bundle) version(r *request, rec store.Record, shown part) error {
	b.entry().text(`{"fullUrl":`).fullURL(r, rec.Key)
	if !rec.Deleted {
		b.text(`,"resource":`)
		if err := b.resource(rec, shown); err != nil {
			return err
		}
	}
	b.text(`,"request":{"method":`).quote(string(r.dialect.historyMethod(rec.Method)))
	b.text(`,"url":`).quote(historyAddress(r, rec))
	b.text(`},"response":{"status":`).quote(historyStatus(rec))
	b.text(`,"location":`).quote(r.versionURL(rec))
	b.text(`,"etag":`).quote(etag(rec.Version))
	b.text(`,"lastModified":"`)
	b.json = r4.AppendInstant(b.json, rec.Updated)
	b.text(`"}}`)
	return nil
}

// historyAddress is where the interaction went that made a version, relative to
// the base.
func historyAddress(r *request, rec store.Record) string {
	if rec.Method == store.MethodPost {
		return r.spelled(rec.Key.Type)
	}
	return r.recordPath(rec.Key)
}

// historyStatus is how the interaction that made a version was answered.
func historyStatus(rec store.Record) string {
	status := http.StatusOK
	if !rec.Deleted && rec.Created.Equal(rec.Updated) {
		status = http.StatusCreated
	}
	return strconv.Itoa(status) + " " + http.StatusText(status)
}
