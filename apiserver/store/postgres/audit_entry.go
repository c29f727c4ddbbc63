package postgres

import (
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/paddock-health/paddock/apiserver/audit"
)

// entryDictionary is the S2 dictionary for entries of the audit log. As with dictionary, stored entries
// can be decompressed only with it, so it must not change: another dictionary needs another codec.
var entryDictionary = s2.MakeDict([]byte(entryDictionaryText), nil)

const entryDictionaryText = `,"correlation":"","issuer":"","subject":"Issued","subject":"User","rule":"confidentiality","rule":"default","rule":"link","rule":"token","rule":"rbac",` +
	`"breakGlass":true,"requests":,"parameters":["_count","_include","_sort","name","family","birthdate","patient","_lastUpdated","identifier"],"status":400,"status":401,"status":403,"status":404,"status":409,"status":412,"status":422,"status":503,` +
	`"api":"kubernetes","interaction":"list","action":"E","method":"GET","type":"","api":"native","interaction":"native-get","api":"ahds","interaction":"list deliveries",` +
	`"type":"AvailabilitySlot","type":"WebhookEvent","type":"EventGroup","type":"Endpoint","type":"Group","type":"Person","type":"Device","type":"Location","type":"HealthcareService","type":"Organization","type":"PractitionerRole","type":"Practitioner","type":"RelatedPerson",` +
	`"Organization/","PractitionerRole/","Practitioner/","RelatedPerson/","AvailabilitySlot/","interaction":"batch","action":"E","method":"POST","interaction":"history-instance","interaction":"vread",` +
	`"interaction":"patch","action":"U","method":"PATCH","interaction":"delete","action":"D","method":"DELETE","type":"Patient","status":204,"records":["interaction":"update","action":"U","method":"PUT","type":"Patient","status":200,"records":["Patient/` +
	`","api":"fhir","interaction":"search-type","action":"E","method":"GET","type":"Patient","status":200,"records":["Patient/","Patient/","api":"fhir","interaction":"read","action":"R","method":"GET","type":"Patient","status":200,"records":["Patient/` +
	`{"time":"2027-01-01T00:00:00.000000Z","id":"1000000000000000000","site":"","request":"","caller":"system:serviceaccount:paddock-system:","subject":"ServiceAccount","address":"10.0.0.1","api":"fhir","interaction":"create","action":"C","method":"POST","type":"Patient","status":201,"records":["Patient/"]}`

// entryPacker appends entries in their stored form: codecS2 and the compressed JSON, or JSON alone.
type entryPacker struct {
	// plain is set as long as servers of releases before level 3, which read JSON only, may use the
	// database.
	plain  bool
	packed []byte
}

// append appends an entry, which is given as JSON.
func (p *entryPacker) append(to, json []byte) []byte {
	if p.plain {
		return append(to, json...)
	}
	p.packed = entryDictionary.Encode(p.packed, json)
	return append(append(to, codecS2), p.packed...)
}

// parseEntry parses an entry in its stored form.
func parseEntry(stored []byte) (audit.Entry, error) {
	if len(stored) == 0 || stored[0] != codecS2 {
		return audit.Parse(stored)
	}
	text, err := entryDictionary.Decode(nil, stored[1:])
	if err != nil {
		return audit.Entry{}, fmt.Errorf("decompress an entry of the audit log: %w", err)
	}
	return audit.Parse(text)
}
