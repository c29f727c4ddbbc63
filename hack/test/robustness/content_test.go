package robustness

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-health/paddock/hack/test/robustness/history"
)

// kind is a type of resource, its segment in paths, the site that has its records, and the members
// that R4 requires of the type. If mark is not empty, all records have it as an identifier, by which
// searches find them among other records of the type.
type kind struct{ name, segment, site, required, mark string }

// Each spec writes records of its own type or site. The specs of deliveries write Practitioners,
// whose changes are events.
var (
	patients           = kind{"Patient", "patient", siteID, "", ""}
	relatedPersons     = kind{"RelatedPerson", "related-person", siteID, `"patient":{"display":"Rex"},`, ""}
	persons            = kind{"Person", "person", siteID, "", ""}
	patientsInPostgres = kind{"Patient", "patient", postgresSiteID, "", ""}
)

// markSystem is the system of the identifier that is the mark of a kind.
const markSystem = "urn:mark"

// body is a resource that holds a token at both ends, around a filler that
// follows from the token, so that a half-written one is noticed. Criteria, if there
// are any, choose it.
func (k kind) body(id, token, criteria string) []byte {
	member, chosenBy := "", ""
	if id != "" {
		member = `"id":"` + id + `",`
	}
	if criteria != "" {
		chosenBy = `,{"value":"` + criteria + `"}`
	}
	if k.mark != "" {
		chosenBy += `,{"system":"` + markSystem + `","value":"` + k.mark + `"}`
	}
	return fmt.Appendf(nil, `{"resourceType":"%s",%s%s"identifier":[{"system":"urn:token","value":"%s"}%s],"name":[{"text":"%s"}],"address":[{"text":"%s"}]}`,
		k.name, member, k.required, token, chosenBy, filler(token), token)
}

// filler is 32 to 800 characters, chosen by the token.
func filler(token string) string {
	sum := sha256.Sum256([]byte(token))
	return strings.Repeat(hex.EncodeToString(sum[:16]), 1+int(sum[0])%25)
}

// resource is what of a resource is looked at.
type resource struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Meta         struct {
		VersionID   string    `json:"versionId"`
		LastUpdated time.Time `json:"lastUpdated"`
	} `json:"meta"`
	Identifier []struct{ Value string } `json:"identifier"`
	Name       []struct{ Text string }  `json:"name"`
	Address    []struct{ Text string }  `json:"address"`
}

// version reads a resource, and finds what is wrong with it.
func (k kind) version(raw []byte) (id string, v history.Version) {
	var r resource
	if err := json.Unmarshal(raw, &r); err != nil {
		v.Damage = err.Error()
		return "", v
	}
	number, err := strconv.ParseInt(r.Meta.VersionID, 10, 64)
	v.Number, v.Updated = number, r.Meta.LastUpdated
	switch {
	case err != nil:
		v.Damage = err.Error()
	case r.ResourceType != k.name || len(r.Identifier) == 0 || len(r.Name) != 1 || len(r.Address) != 1:
		v.Damage = "it is not what anybody writes: " + string(raw)
	default:
		v.Token = r.Identifier[0].Value
		if r.Name[0].Text != filler(v.Token) || r.Address[0].Text != v.Token {
			v.Damage = "its parts do not belong together: " + string(raw)
		}
	}
	return r.ID, v
}
