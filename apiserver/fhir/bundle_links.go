package fhir

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/paddock-health/paddock/apiserver/fhir/r4"
	"github.com/paddock-health/paddock/apiserver/fhir/search"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/web"
)

// linkResolver replaces the links between the entries of a transaction: references to the fullUrl
// of an entry, and conditional references. R4 http.html#trules.
type linkResolver struct {
	handler *handler
	request *request
	// written are the records that the transaction creates or updates, with their new values. It is
	// empty if there are no conditional references, and so is writtenKeys.
	written []writtenRecord
	// writtenKeys are the references, in lower case, to all records that the transaction writes or
	// deletes.
	writtenKeys map[string]bool
	// targets has the relative reference to the record of an entry by the fullUrl of the entry.
	targets map[string]string
	// conditionalTargets has the relative references that were found before, by search URI.
	conditionalTargets map[string]string
	conditional        conditionalReferences
}

// conditionalReferences has the search URIs in a transaction, such as Patient?identifier=1, by the
// generated references that replace them until they are resolved. r4.Read rejects conditional
// references outside of a Bundle. R4 http.html#trules.
type conditionalReferences map[string]string

// searchURI matches a conditional reference.
var searchURI = regexp.MustCompile(`^([A-Z][A-Za-z]+)\?(.+)$`)

// replaceSearchURIs replaces each search URI in a resource by a generated reference, which it adds
// to c.
func (c conditionalReferences) replaceSearchURIs(resource []byte) ([]byte, error) {
	var edits []textEdit
	err := visitStrings(resource, func(name string, raw jsontext.Value, at int) error {
		text, _ := unquote(raw)
		match := searchURI.FindStringSubmatch(text)
		if name != "reference" || match == nil {
			return nil
		}
		reference := match[1] + "/" + uuid.NewString()
		c[reference] = text
		edits = append(edits, textEdit{at, at + len(raw), []byte(`"` + reference + `"`)})
		return nil
	})
	if len(edits) == 0 {
		return resource, err
	}
	return applyEdits(resource, edits), err
}

// writtenRecord is a record that a transaction writes, with its index values.
type writtenRecord struct {
	typeName, reference string
	values              []store.IndexValue
}

// newLinkResolver collects the fullUrls of the entries and, if there are conditional references,
// the records that the entries write. It returns r4.Errors if two entries have the same fullUrl.
func newLinkResolver(h *handler, r *request, writes []*entryWrite, conditional conditionalReferences) (*linkResolver, error) {
	l := &linkResolver{
		handler: h, request: r, writtenKeys: map[string]bool{},
		targets: map[string]string{}, conditionalTargets: map[string]string{}, conditional: conditional,
	}
	for _, w := range writes {
		if len(conditional) > 0 && w.step.found == nil {
			l.addWritten(w)
		}
		if w.fullURL == "" || w.method == http.MethodDelete {
			continue
		}
		if _, twice := l.targets[w.fullURL]; twice {
			return nil, r4.Errors{invalidBundle(w.path+".fullUrl", "two entries have the fullUrl "+r4.Quote(w.fullURL)+"; send distinct fullUrls")}
		}
		l.targets[w.fullURL] = w.reference()
	}
	return l, nil
}

func (l *linkResolver) addWritten(w *entryWrite) {
	reference := w.reference()
	l.writtenKeys[strings.ToLower(reference)] = true
	if op := w.step.op; op.Kind == store.Put {
		l.written = append(l.written, writtenRecord{op.Key.Type, reference, op.Values()})
	}
}

// reference returns the relative reference to the record of the entry.
func (w *entryWrite) reference() string {
	key := w.step.op.Key
	if w.step.found != nil {
		key = w.step.found.Key
	}
	return key.Type + "/" + key.ID
}

// linkElements are the elements of type uri, url, oid, uuid or Reference.reference in the supported
// types and the datatypes, except Reference.type, which names a type. Elements of type canonical are
// not resolved.
var linkElements = []string{
	"address", "implicitRules", "issuer", "jurisdiction", "onlineInformation", "reference", "source", "system",
	"url", "valueOid", "valueUri", "valueUrl", "valueUuid",
}

// resolveEntry replaces the links in the resource of an entry by relative references.
func (l *linkResolver) resolveEntry(w *entryWrite) error {
	if w.step.op.Kind != store.Put {
		return nil
	}
	var edits []textEdit
	err := visitStrings(w.step.sent.text, func(name string, raw jsontext.Value, at int) error {
		text, _ := unquote(raw)
		resolved := text
		switch {
		case name == "div":
			resolved = l.resolveMarkup(w, text)
		case slices.Contains(linkElements, name):
			var err error
			if resolved, err = l.resolveLink(w, text, name == "reference"); err != nil {
				return err
			}
		}
		if resolved != text {
			quoted, err := jsontext.AppendQuote(nil, resolved)
			if err != nil {
				return err
			}
			edits = append(edits, textEdit{at, at + len(raw), quoted})
		}
		return nil
	})
	if err != nil || len(edits) == 0 {
		return err
	}
	sent, err := w.request.readText(applyEdits(w.step.sent.text, edits), w.step.sent.dialect)
	if err != nil {
		return err
	}
	w.step.putBody(sent)
	return nil
}

// absoluteReference matches the address of a record: the base and the relative reference. R4
// references.html#regex.
var absoluteReference = regexp.MustCompile(`^(https?://.+/)([A-Z][A-Za-z]+/[A-Za-z0-9\-.]{1,64})$`)

// resolveLink returns the relative reference to the record that a link refers to. It returns the
// link itself if that is neither the fullUrl of an entry nor a conditional reference. Only if
// isReference is set can the link be a conditional reference, or relative to the base of the fullUrl
// of w. R4 bundle.html#references.
func (l *linkResolver) resolveLink(w *entryWrite, link string, isReference bool) (string, error) {
	if target, ok := l.targets[link]; ok {
		return target, nil
	}
	if !isReference {
		return link, nil
	}
	if own := absoluteReference.FindStringSubmatch(w.fullURL); own != nil {
		if target, ok := l.targets[own[1]+link]; ok {
			return target, nil
		}
	}
	if conditional, ok := l.conditional[link]; ok {
		match := searchURI.FindStringSubmatch(conditional)
		return l.resolveConditional(conditional, match[1], match[2])
	}
	return link, nil
}

// resolveConditional returns the relative reference to the one record that matches a conditional
// reference: a stored record or one that the transaction writes. Errors: *typeUnknownError,
// *invalidError, *multipleMatchesError, search.Errors and those of authorization and storage.
func (l *linkResolver) resolveConditional(link, typeName, query string) (string, error) {
	if target, ok := l.conditionalTargets[link]; ok {
		return target, nil
	}
	kind, known := r4.TypeOf(typeName)
	if !known {
		return "", &typeUnknownError{segment: typeName}
	}
	if err := l.request.authorizeList(kind); err != nil {
		return "", err
	}
	values, err := web.ParseQuery(query)
	if err != nil {
		return "", invalidReference(link, "has an invalid query string: "+err.Error())
	}
	options := l.handler.searchOptions(l.request)
	options.Type = kind.Name
	criteria, err := search.ParseCriteria(values, options)
	if err != nil {
		return "", criteriaError("", "the conditional reference "+r4.Quote(link), err)
	}
	var found []string
	for _, record := range l.written {
		if record.typeName == kind.Name && criteria.Matches(record.values) {
			found = append(found, record.reference)
		}
	}
	criteria.Count = len(l.writtenKeys) + 2
	page, err := l.request.searchRecords(criteria, nil, 0)
	if err != nil {
		return "", err
	}
	for _, rec := range page.Records {
		if reference := rec.Key.Type + "/" + rec.Key.ID; !l.writtenKeys[strings.ToLower(reference)] {
			found = append(found, reference)
		}
	}
	switch {
	case page.Next != nil: // more matches than the transaction writes, or too large for one page
		return "", &multipleMatchesError{criteria: link}
	case len(found) == 0:
		return "", invalidReference(link, "matches no record; correct its criteria, or create the record first")
	case len(found) == 1:
		l.conditionalTargets[link] = found[0]
		return found[0], nil
	default:
		return "", &multipleMatchesError{criteria: link}
	}
}

func invalidReference(link, problem string) error {
	return &invalidError{code: codeInvalidReference, diagnostics: "the conditional reference " + r4.Quote(link) + " " + problem}
}

// markupLink matches an attribute of a narrative whose value is a link.
var markupLink = regexp.MustCompile(`(\s(?:href|src)\s*=\s*)(?:"([^"]*)"|'([^']*)')`)

func (l *linkResolver) resolveMarkup(w *entryWrite, markup string) string {
	return markupLink.ReplaceAllStringFunc(markup, func(attribute string) string {
		match := markupLink.FindStringSubmatch(attribute)
		link := match[2] + match[3]
		if target, _ := l.resolveLink(w, link, false); target != link {
			return match[1] + `"` + target + `"`
		}
		return attribute
	})
}

// textEdit replaces the bytes of a text at the offsets from ≤ i < to.
type textEdit struct {
	from, to int
	text     []byte
}

// applyEdits applies edits, which are sorted and do not overlap.
func applyEdits(text []byte, edits []textEdit) []byte {
	var edited []byte
	done := 0
	for _, e := range edits {
		edited = append(append(edited, text[done:e.from]...), e.text...)
		done = e.to
	}
	return append(edited, text[done:]...)
}

// visitStrings visits the string values in a JSON text. name is the name of the member whose value
// is the string or an array with the string. raw is the string with its quotes. at is the offset of
// raw in text.
func visitStrings(text []byte, visit func(name string, raw jsontext.Value, at int) error) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	names := []string{""} // by depth
	for {
		kind := decoder.PeekKind()
		if kind == jsontext.KindInvalid {
			return nil // the end, because the text is valid
		}
		depth := decoder.StackDepth()
		container, length := decoder.StackIndex(depth)
		isName := container == jsontext.KindBeginObject && length%2 == 0
		if kind != jsontext.KindString {
			if _, err := decoder.ReadToken(); err != nil {
				return err
			}
			if deeper := decoder.StackDepth(); deeper > depth {
				names = append(names[:deeper], names[depth])
			}
			continue
		}
		raw, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		end := int(decoder.InputOffset())
		raw = text[end-len(raw) : end]
		if isName {
			names[depth], _ = unquote(raw)
		} else if err := visit(names[depth], raw, end-len(raw)); err != nil {
			return err
		}
	}
}
