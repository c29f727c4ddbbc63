package cluster

import (
	"encoding/json"
	"strconv"
	"strings"

	recordsv1 "github.com/paddock-health/paddock/api/records/v1alpha1"
	"github.com/paddock-health/paddock/apiserver/store"
	"github.com/paddock-health/paddock/apiserver/store/cluster/objects"
)

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
		claims[i] = store.Claim{Line: h.Line, From: objects.FromMicro(h.From), Until: objects.FromMicro(h.Until), Expires: objects.FromMicro(h.Expires)}
	}
	return claims
}

// supersede returns the newest version in the form in which a RecordHistory stores it.
func supersede(spec *recordsv1.RecordSpec) recordsv1.SupersededVersion {
	past := recordsv1.SupersededVersion{
		UID: spec.UID, Method: spec.Method, Created: spec.Created, Updated: spec.Updated, Deleted: spec.Deleted,
		IDOffset: spec.IDOffset, MetaOffset: spec.MetaOffset,
	}
	if spec.Body != "" {
		past.Body = objects.Compress([]byte(spec.Body), nil)
	}
	return past
}

func fromSuperseded(spec *recordsv1.RecordSpec, number int64, past recordsv1.SupersededVersion) (store.Record, error) {
	var body []byte
	if len(past.Body) > 0 {
		var err error
		if body, err = objects.Decompress(past.Body); err != nil {
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

// The maximum sizes of an encoded object without its body, in bytes.
const (
	recordOverhead     = 1024
	supersededOverhead = 256
	// listedOverhead is the size of the numbers that a Record lists for each superseded version.
	listedOverhead = 24
)

// recordSize returns an estimate of the size of a Record as JSON, in bytes, without its events. The
// body is a JSON string in it, in which quotes, backslashes and control characters take two bytes or
// more.
func recordSize(spec *recordsv1.RecordSpec) int64 {
	labels := len(spec.Labels)
	for _, of := range spec.HistoryLabels {
		labels += quotedLen(of) + len(`"",`)
	}
	return recordOverhead + int64(labels) + int64(len(spec.Claims))*supersededOverhead +
		int64(len(spec.History))*listedOverhead + int64(quotedLen(spec.Body)) + int64(quotedLen(spec.Metadata))
}

func quotedLen(s string) int {
	n := len(s) + strings.Count(s, `"`) + strings.Count(s, `\`) + strings.Count(s, "\n") + strings.Count(s, "\t") + strings.Count(s, "\r")
	// encoding/json writes each of these characters as six bytes.
	return n + 5*(strings.Count(s, "<")+strings.Count(s, ">")+strings.Count(s, "&"))
}

// supersededSize returns an estimate of the size in bytes of a superseded version as JSON. Its body is
// compressed and in base64.
func supersededSize(past *recordsv1.SupersededVersion) int64 {
	return supersededOverhead + inBase64(int64(len(past.Body)))
}

// inBase64 returns the length of the base64 encoding of a number of bytes.
func inBase64(bytes int64) int64 { return (bytes + 2) / 3 * 4 }

// storedSize returns an estimate of the size in bytes of a record with its history in etcd, without its
// events.
func storedSize(spec *recordsv1.RecordSpec) int64 {
	size := recordSize(spec)
	for _, past := range spec.History {
		size += past
	}
	return size
}

func versionKey(version int64) string {
	return strconv.FormatInt(version, 10)
}

// historyPatch returns the merge patch (RFC 7396) that adds the newest version to a RecordHistory
// and removes dropped versions.
func historyPatch(spec *recordsv1.RecordSpec, past recordsv1.SupersededVersion) ([]byte, error) {
	versions := droppedVersions(spec)
	versions[versionKey(spec.Version)] = &past
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"managedFields": objects.NoManagedFields},
		"spec":     map[string]any{"versions": versions},
	})
}
