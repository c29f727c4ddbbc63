package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// plainID matches the lower-cased ids that may stand in an object name as they
// are (RFC 1123 subdomain).
var plainID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// hexPrefix starts an id that is written in hexadecimal because an object name
// cannot hold it. Ids that start so themselves are written in hexadecimal too,
// so that no two ids share a name.
const hexPrefix = "x."

// recordName is the name of the Record of a key: reversible, the same for all
// spellings of the id, and a legal object name for every legal FHIR id.
func recordName(key store.Key) string {
	id := strings.ToLower(key.ID)
	if !plainID.MatchString(id) || strings.HasPrefix(id, hexPrefix) {
		id = hexPrefix + hex.EncodeToString([]byte(id))
	}
	return strings.ToLower(key.Type) + "." + id
}

// historyName is the name of the RecordHistory of a Record's lineage.
func historyName(record, lineage string) string {
	return record + "." + lineage
}

// lineName is the name of the RecordClaim of a line.
func lineName(line string) string {
	sum := sha256.Sum256([]byte(line))
	return "line-" + hex.EncodeToString(sum[:20])
}
