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

// links resolves the links between the entries of a transaction: to what each
// entry's fullUrl stands for, and to what conditional references choose.
// R4 http.html#trules.
type links struct {
	handler *handler
	request *request
	// written are the records that the transaction leaves, touched all that it
	// writes, by reference in lower case.
	written []writtenRecord
	touched map[string]bool
	// targets are relative references by fullUrl, chosen those by search URI.
	targets map[string]string
	chosen  map[string]string
	// conditional are the search URIs.
	conditional conditionalReferences
}

// conditionalReferences are the search URIs in a transaction, by the references
// that stand in their place until they are resolved: a resource by itself may not
// have any. R4 http.html#trules.
type conditionalReferences map[string]string

// searchURI matches a conditional reference.
var searchURI = regexp.MustCompile(`^([A-Z][A-Za-z]+)\?(.+)$`)

// replace puts references in the place of search URIs.
func (c conditionalReferences) replace(resource []byte) ([]byte, error) {
	var edits []textEdit
	err := eachString(resource, func(name string, raw jsontext.Value, at int) error {
		text, _ := stringOf(raw)
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

// writtenRecord is a record that a transaction writes, with what it can be found by.
type writtenRecord struct {
	typeName, reference string
	entries             []store.Entry
}

// newLinks finds out what the entries' fullUrls stand for. Errors: r4.Errors.
func newLinks(h *handler, r *request, writings []*writing, conditional conditionalReferences) (*links, error) {
	l := &links{
		handler: h, request: r, touched: map[string]bool{},
		targets: map[string]string{}, chosen: map[string]string{}, conditional: conditional,
	}
	for _, w := range writings {
		if len(conditional) > 0 && w.step.found == nil {
			l.touch(w)
		}
		if w.fullURL == "" || w.method == http.MethodDelete {
			continue
		}
		if _, twice := l.targets[w.fullURL]; twice {
			return nil, r4.Errors{invalidBundle(w.at+".fullUrl", "two entries have the fullUrl "+r4.Quote(w.fullURL))}
		}
		l.targets[w.fullURL] = w.reference()
	}
	return l, nil
}

// touch notes what an entry writes.
func (l *links) touch(w *writing) {
	reference := w.reference()
	l.touched[strings.ToLower(reference)] = true
	if op := w.step.op; op.Kind == store.Put {
		l.written = append(l.written, writtenRecord{op.Key.Type, reference, Extract(op.Key.Type, op.Body.JSON)})
	}
}

// reference is a relative reference to the record of an entry.
func (w *writing) reference() string {
	key := w.step.op.Key
	if w.step.found != nil {
		key = w.step.found.Key
	}
	return key.Type + "/" + key.ID
}

// linkElements are the elements of our types and of datatypes that hold links: of
// the types uri, url, oid and uuid, and Reference.reference. Those of the type
// canonical are not links to resolve.
var linkElements = []string{
	"address", "implicitRules", "issuer", "jurisdiction", "onlineInformation", "reference", "source", "system",
	"url", "valueOid", "valueUri", "valueUrl", "valueUuid",
}

// resolve puts what the links of an entry's resource stand for in their place.
func (l *links) resolve(w *writing) error {
	if w.step.op.Kind != store.Put {
		return nil
	}
	var edits []textEdit
	err := eachString(w.step.sent.text, func(name string, raw jsontext.Value, at int) error {
		text, _ := stringOf(raw)
		resolved := text
		switch {
		case name == "div":
			resolved = l.resolveMarkup(w, text)
		case slices.Contains(linkElements, name):
			var err error
			if resolved, err = l.target(w, text, name == "reference"); err != nil {
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
	w.step.sent, w.step.op.Body = sent, sent.stored()
	return nil
}

// restful matches the address of a record: its base, and the reference relative to
// that. R4 references.html#regex.
var restful = regexp.MustCompile(`^(https?://.+/)([A-Z][A-Za-z]+/[A-Za-z0-9\-.]{1,64})$`)

// target is what a link stands for; itself, if it is not to be resolved. A relative
// reference is to be understood below the base of its entry's fullUrl.
// R4 bundle.html#references.
func (l *links) target(w *writing, link string, isReference bool) (string, error) {
	if target, ok := l.targets[link]; ok {
		return target, nil
	}
	if !isReference {
		return link, nil
	}
	if own := restful.FindStringSubmatch(w.fullURL); own != nil {
		if target, ok := l.targets[own[1]+link]; ok {
			return target, nil
		}
	}
	if conditional, ok := l.conditional[link]; ok {
		match := searchURI.FindStringSubmatch(conditional)
		return l.choose(conditional, match[1], match[2])
	}
	return link, nil
}

// choose finds the one record that a conditional reference chooses, among those
// stored and those of the transaction.
func (l *links) choose(link, typeName, query string) (string, error) {
	if target, ok := l.chosen[link]; ok {
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
		return "", invalidReference(link, "cannot be read: "+err.Error())
	}
	options := l.handler.searchOptions(l.request)
	options.Type = kind.Name
	criteria, err := search.ParseCriteria(values, options)
	if err != nil {
		return "", err
	}
	var found []string
	for _, record := range l.written {
		if record.typeName == kind.Name && criteria.HoldsFor(record.entries) {
			found = append(found, record.reference)
		}
	}
	criteria.Count = len(l.touched) + 2
	page, err := l.request.matches(criteria, nil, nil)
	if err != nil {
		return "", err
	}
	for _, rec := range page.Records {
		if reference := rec.Key.Type + "/" + rec.Key.ID; !l.touched[strings.ToLower(reference)] {
			found = append(found, reference)
		}
	}
	switch {
	case page.Next != nil: // so many matches that some are not touched, or larger ones than a page holds
		return "", &multipleMatchesError{criteria: link}
	case len(found) == 0:
		return "", invalidReference(link, "chooses no record")
	case len(found) == 1:
		l.chosen[link] = found[0]
		return found[0], nil
	default:
		return "", &multipleMatchesError{criteria: link}
	}
}

func invalidReference(link, problem string) error {
	return &invalidError{code: codeInvalidReference, diagnostics: "the conditional reference " + r4.Quote(link) + " " + problem}
}

// markupLink matches the links of a narrative.
var markupLink = regexp.MustCompile(`(\s(?:href|src)\s*=\s*)(?:"([^"]*)"|'([^']*)')`)

// resolveMarkup resolves the links of a narrative.
func (l *links) resolveMarkup(w *writing, markup string) string {
	return markupLink.ReplaceAllStringFunc(markup, func(attribute string) string {
		match := markupLink.FindStringSubmatch(attribute)
		link := match[2] + match[3]
		if target, _ := l.target(w, link, false); target != link {
			return match[1] + `"` + target + `"`
		}
		return attribute
	})
}

// textEdit replaces a part of a text.
type textEdit struct {
	from, to int
	text     []byte
}

// applyEdits makes the edits, which are in order and do not overlap.
func applyEdits(text []byte, edits []textEdit) []byte {
	var edited []byte
	done := 0
	for _, e := range edits {
		edited = append(append(edited, text[done:e.from]...), e.text...)
		done = e.to
	}
	return append(edited, text[done:]...)
}

// eachString visits the strings in a JSON text that are values, with the name of
// the member that each is of, or is in an array of, and where it starts.
func eachString(text []byte, visit func(name string, raw jsontext.Value, at int) error) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(text))
	names := []string{""} // by depth
	for {
		kind := decoder.PeekKind()
		if kind == jsontext.KindInvalid {
			return nil // the end: the text is valid
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
			names[depth], _ = stringOf(raw)
		} else if err := visit(names[depth], raw, end-len(raw)); err != nil {
			return err
		}
	}
}
