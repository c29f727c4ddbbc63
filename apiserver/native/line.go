package native

import (
	"bytes"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/paddock-health/paddock/apiserver/store"
)

// milliseconds is the layout of the times of versions.
const milliseconds = "2006-01-02T15:04:05.000Z"

// partBytes is the size in bytes of the versions of a line after which the line has no further
// version. The next part repeats one version, which is a small part of it: the default maximum of a
// body is 4 MiB. A line fits into an import if bodies have at most 16 MiB: its bodies then have at
// most 32 MiB together, and a text in JSON can take twice the bytes of its body.
const partBytes = 16 << 20

// line is a record in the native format, or a part of a record. Part is the number of the part, or 0
// if the line is the whole record. The first version of a part is the last version of the part before
// it. Only the last part has claims and metadata.
type line struct {
	Type            string   `json:"type"`
	ID              string   `json:"id"`
	Part            uint     `json:"part,omitempty"`
	Versions        versions `json:"versions"`
	Claims          claims   `json:"claims,omitempty"`
	Metadata        string   `json:"metadata,omitempty"`
	MetadataVersion int64    `json:"metadataVersion,omitempty"`
}

// version is a version of a record. It has a body, a text or deleted. The stored body has an empty id,
// and a meta without the values that the server sets. The offsets are where the server inserts the id
// and these values.
type version struct {
	Version    int64          `json:"version"`
	Created    time.Time      `json:"created"`
	Updated    time.Time      `json:"updated"`
	Method     store.Method   `json:"method"`
	Deleted    bool           `json:"deleted,omitempty"`
	IDOffset   int            `json:"idOffset,omitempty"`
	MetaOffset int            `json:"metaOffset,omitempty"`
	Body       jsontext.Value `json:"body,omitempty"`
	// Text is the body as a string. It is used if the body has line breaks, because a line cannot have
	// them, or if the body does not begin and end with a brace.
	Text string `json:"text,omitempty"`
}

func (v *version) record() store.Record {
	body := []byte(v.Body)
	if v.Text != "" {
		body = []byte(v.Text)
	}
	return store.Record{
		Version: v.Version, Created: v.Created.UTC(), Updated: v.Updated.UTC(), Method: v.Method, Deleted: v.Deleted,
		Body: store.Body{JSON: body, IDOffset: v.IDOffset, MetaOffset: v.MetaOffset},
	}
}

// versions are the versions of a line, without keys. Each is checked when it is decoded, so that a
// list of invalid versions takes no memory.
type versions []store.Record

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Errors: *store.InvalidDumpError, those of JSON.
func (all *versions) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	*all = nil // a repeated member replaces the one before
	return decodeList(from, func(v *version) error {
		*all = append(*all, v.record())
		return store.CheckVersion(*all, len(*all)-1)
	})
}

// claims are the claims of a line. Those without a line are refused when they are decoded, so that a
// list of them takes no memory.
type claims []store.Claim

// UnmarshalJSONFrom implements json.UnmarshalerFrom. Errors: *store.InvalidDumpError, those of JSON.
func (all *claims) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	*all = nil // a repeated member replaces the one before
	return decodeList(from, func(c *claim) error {
		*all = append(*all, store.Claim{Line: c.Line, From: utc(c.From), Until: utc(c.Until), Expires: utc(c.Expires)})
		return store.CheckClaim(*all, len(*all)-1)
	})
}

// decodeList calls add with each element of a JSON array until add fails. Errors: those of add and of
// JSON.
func decodeList[Element any](from *jsontext.Decoder, add func(*Element) error) error {
	if from.PeekKind() != '[' {
		return json.UnmarshalDecode(from, new([]Element)) // fails unless it is null
	}
	if _, err := from.ReadToken(); err != nil {
		return err
	}
	for from.PeekKind() != ']' {
		element := new(Element)
		if err := json.UnmarshalDecode(from, element); err != nil {
			return err
		}
		if err := add(element); err != nil {
			return err
		}
	}
	_, err := from.ReadToken()
	return err
}

type claim struct {
	Line    string    `json:"line"`
	From    time.Time `json:"from,omitzero"`
	Until   time.Time `json:"until,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}

// partLength returns how many of the versions of a record fit into one line.
func partLength(versions []store.Record) int {
	size := 0
	for i := range versions {
		// A part has at least one version that the part before does not have.
		if size += versionBytes + len(versions[i].Body.JSON); size > partBytes && i > 0 {
			return i + 1
		}
	}
	return len(versions)
}

// appendLine appends a record, or the part of it with a number, as a line. The same record always gives the
// same bytes, whatever the engine that dumped it.
func appendLine(to []byte, d *store.Dumped, part int) []byte {
	to = appendQuoted(append(to, `{"type":`...), d.Key.Type)
	to = appendQuoted(append(to, `,"id":`...), d.Key.ID)
	if part > 0 {
		to = strconv.AppendInt(append(to, `,"part":`...), int64(part), 10)
	}
	to = append(to, `,"versions":[`...)
	for i := range d.Versions {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendVersion(to, &d.Versions[i])
	}
	to = append(to, ']')
	newest := d.Newest()
	if len(newest.Claims) > 0 {
		to = append(append(to, `,"claims":`...), claimsOf(newest)...)
	}
	if len(newest.Metadata) > 0 {
		to = appendQuoted(append(to, `,"metadata":`...), newest.Metadata)
		to = strconv.AppendInt(append(to, `,"metadataVersion":`...), newest.MetadataVersion, 10)
	}
	return append(to, "}\n"...)
}

func appendVersion(to []byte, v *store.Record) []byte {
	to = strconv.AppendInt(append(to, `{"version":`...), v.Version, 10)
	to = append(to, `,"created":"`...)
	begin := len(to)
	to = v.Created.UTC().AppendFormat(to, milliseconds)
	created := to[begin:]
	if to = append(to, `","updated":"`...); v.Updated.Equal(v.Created) {
		to = append(to, created...) // takes less time than to format the same time again
	} else {
		to = v.Updated.UTC().AppendFormat(to, milliseconds)
	}
	to = appendQuoted(append(to, `","method":`...), v.Method)
	switch {
	case v.Deleted:
		return append(to, `,"deleted":true}`...)
	case v.Body.IDOffset != 0 || v.Body.MetaOffset != 0:
		to = strconv.AppendInt(append(to, `,"idOffset":`...), int64(v.Body.IDOffset), 10)
		to = strconv.AppendInt(append(to, `,"metaOffset":`...), int64(v.Body.MetaOffset), 10)
	}
	// Two searches for a byte take less time than one for either of them.
	hasBreak := bytes.IndexByte(v.Body.JSON, '\n') >= 0 || bytes.IndexByte(v.Body.JSON, '\r') >= 0
	if hasBreak || v.Body.JSON[0] != '{' || v.Body.JSON[len(v.Body.JSON)-1] != '}' {
		return append(appendQuoted(append(to, `,"text":`...), v.Body.JSON), '}')
	}
	return append(append(append(to, `,"body":`...), v.Body.JSON...), '}')
}

func appendQuoted[Text ~string | ~[]byte](to []byte, text Text) []byte {
	to, _ = jsontext.AppendQuote(to, text) // fails only for invalid UTF-8, which it replaces
	return to
}

func claimsOf(newest *store.Record) []byte {
	all := make([]claim, len(newest.Claims))
	for i, c := range newest.Claims {
		all[i] = claim{c.Line, c.From.UTC(), c.Until.UTC(), c.Expires.UTC()}
	}
	text, _ := json.Marshal(all) // strings and times can always be encoded
	return text
}

// parseLine parses a line. It returns an error for invalid JSON, for a member whose value has the wrong
// JSON type and for unknown members, and a *store.InvalidDumpError for invalid versions and claims. The
// caller must check the rest with store.Dumped.Check.
func parseLine(text []byte) (store.Dumped, error) {
	var l line
	// Duplicate names in a body are left to the check of bodies, which reports those of known elements.
	if err := json.Unmarshal(text, &l, json.RejectUnknownMembers(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return store.Dumped{}, err
	}
	d := store.Dumped{Key: store.Key{Type: l.Type, ID: l.ID}, Versions: l.Versions, Continues: l.Part > 1}
	for i := range d.Versions {
		d.Versions[i].Key = d.Key
	}
	if len(d.Versions) == 0 {
		return d, nil // store.Dumped.Check reports it
	}
	newest := d.Newest()
	newest.Claims = l.Claims
	if l.Metadata != "" {
		newest.Metadata, newest.MetadataVersion = []byte(l.Metadata), l.MetadataVersion
	}
	return d, nil
}

// utc returns a time in UTC, and the zero value for a zero time.
func utc(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.UTC()
}
