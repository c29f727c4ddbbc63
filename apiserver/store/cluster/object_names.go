package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"github.com/paddock-health/paddock/apiserver/store"
)

// plainID matches the lower-case ids that an object name may contain unchanged (RFC 1123
// subdomain).
var plainID = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// hexPrefix is the prefix of an id in hexadecimal. Ids that an object name cannot contain unchanged
// are in hexadecimal. So are ids that start with hexPrefix themselves, to keep names unique.
const hexPrefix = "x."

// recordName returns the name of the Record of a key. The name is a legal object name for every legal
// FHIR id. Keys that differ only in case have the same name, all other keys have different names.
func recordName(key store.Key) string {
	id := strings.ToLower(key.ID)
	if !plainID.MatchString(id) || strings.HasPrefix(id, hexPrefix) {
		id = hexPrefix + hex.EncodeToString([]byte(id))
	}
	return strings.ToLower(key.Type) + "." + id
}

func lineName(line string) string {
	sum := sha256.Sum256([]byte(line))
	return "line-" + hex.EncodeToString(sum[:20])
}
