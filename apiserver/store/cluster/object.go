package cluster

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
)

// toRecord reads the newest version out of a Record object.
func toRecord(obj *recordsv1.Record) store.Record {
	spec := &obj.Spec
	var metadata []byte
	if spec.Metadata != "" {
		metadata = []byte(spec.Metadata)
	}
	return store.Record{
		Key:      store.Key{Type: spec.Type, ID: spec.ID},
		UID:      spec.UID,
		Version:  spec.Version,
		Revision: obj.ResourceVersion,
		Created:  spec.Created.UTC(),
		Updated:  spec.Updated.UTC(),
		Method:   store.Method(spec.Method),
		Deleted:  spec.Deleted,
		Body:     store.Body{JSON: []byte(spec.Body), IDOffset: spec.IDOffset, MetaOffset: spec.MetaOffset},
		Claims:   toClaims(spec.Claims),

		Metadata: metadata, MetadataVersion: spec.MetadataVersion,
	}
}

func toClaims(held []recordsv1.HeldClaim) []store.Claim {
	if len(held) == 0 {
		return nil
	}
	claims := make([]store.Claim, len(held))
	for i, h := range held {
		claims[i] = store.Claim{Line: h.Line, From: fromMicro(h.From), Until: fromMicro(h.Until), Expires: fromMicro(h.Expires)}
	}
	return claims
}

func fromMicro(t *metav1.MicroTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func toMicro(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewMicroTime(t.UTC())
	return &m
}

// The encoder and decoder of the library are safe for concurrent use and keep
// their tables, so that one of each serves the process.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(64<<20))
)

// supersede writes the newest version down as one of the past.
func supersede(spec *recordsv1.RecordSpec) recordsv1.SupersededVersion {
	past := recordsv1.SupersededVersion{
		UID: spec.UID, Method: spec.Method, Created: spec.Created, Updated: spec.Updated, Deleted: spec.Deleted,
		IDOffset: spec.IDOffset, MetaOffset: spec.MetaOffset,
	}
	if spec.Body != "" {
		past.Body = encoder.EncodeAll([]byte(spec.Body), nil)
	}
	return past
}

// fromSuperseded reads a past version.
func fromSuperseded(spec *recordsv1.RecordSpec, number int64, past recordsv1.SupersededVersion) (store.Record, error) {
	var body []byte
	if len(past.Body) > 0 {
		var err error
		if body, err = decoder.DecodeAll(past.Body, nil); err != nil {
			return store.Record{}, err
		}
	}
	return store.Record{
		Key:     store.Key{Type: spec.Type, ID: spec.ID},
		UID:     past.UID,
		Version: number,
		Created: past.Created.UTC(),
		Updated: past.Updated.UTC(),
		Method:  store.Method(past.Method),
		Deleted: past.Deleted,
		Body:    store.Body{JSON: body, IDOffset: past.IDOffset, MetaOffset: past.MetaOffset},
	}, nil
}

// Sizes that an encoded object has beside its body, rounded up.
const (
	recordOverhead     = 1024
	supersededOverhead = 256
	// listedOverhead is what a Record tells of each superseded version.
	listedOverhead = 24
)

// recordSize is the encoded size of a Record in bytes, estimated from above.
// The body is a JSON string in it, where quotes, backslashes and control
// characters take two bytes or more.
func recordSize(spec *recordsv1.RecordSpec) int64 {
	return recordOverhead + int64(len(spec.Claims))*supersededOverhead +
		int64(len(spec.History))*listedOverhead + int64(quotedLen(spec.Body)) + int64(quotedLen(spec.Metadata))
}

func quotedLen(s string) int {
	n := len(s) + strings.Count(s, `"`) + strings.Count(s, `\`) + strings.Count(s, "\n") + strings.Count(s, "\t") + strings.Count(s, "\r")
	// encoding/json writes these as six bytes.
	return n + 5*(strings.Count(s, "<")+strings.Count(s, ">")+strings.Count(s, "&"))
}

// supersededSize is the encoded size of a past version: its body is in base64.
func supersededSize(past *recordsv1.SupersededVersion) int64 {
	return supersededOverhead + int64((len(past.Body)+2)/3*4)
}

// storedSize is what a record takes in etcd with its history.
func storedSize(spec *recordsv1.RecordSpec) int64 {
	size := recordSize(spec)
	for _, past := range spec.History {
		size += past
	}
	return size
}

// versionKey is the member of a RecordHistory that holds a version.
func versionKey(version int64) string {
	return strconv.FormatInt(version, 10)
}

// historyPatch is the merge patch (RFC 7396) that adds the newest version to a
// RecordHistory and takes out those that the record gave up.
func historyPatch(spec *recordsv1.RecordSpec, past recordsv1.SupersededVersion) ([]byte, error) {
	versions := map[string]*recordsv1.SupersededVersion{versionKey(spec.Version): &past}
	oldest := spec.Version - int64(len(spec.History))
	for i := range int64(spec.HistoryDropped) {
		versions[versionKey(oldest-1-i)] = nil
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"managedFields": noManagedFields},
		"spec":     map[string]any{"versions": versions},
	})
}
