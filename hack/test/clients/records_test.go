package clients_test

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/template"

	. "github.com/onsi/gomega"
)

// record is a record as a client finds it.
type record struct {
	// reference is type and id, such as Patient/hapi-patient-0.
	reference string
	// body is what was sent to create the record. first is the answer of the server: version 1.
	body, first []byte
}

// recordTypes lists how many records of each type a client finds: 50 in all.
var recordTypes = []struct {
	name  string
	count int
}{
	{"Organization", 5},
	{"Practitioner", 5},
	{"Location", 5},
	{"PractitionerRole", 4},
	{"Patient", 16},
	{"RelatedPerson", 5},
	{"DeviceDefinition", 3},
	{"Device", 3},
	{"Group", 4},
}

const recordCount = 50

//go:embed testdata/*.json
var bodies embed.FS

var bodyTemplates = template.Must(template.New("").Funcs(template.FuncMap{"json": quote}).ParseFS(bodies, "testdata/*.json"))

// quote writes a JSON string. It keeps <, > and & as they are.
func quote(text string) (string, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(text)
	return strings.TrimSpace(out.String()), err
}

var (
	animals  = []string{"Bärli", "ミケ", "Жучка", "Čert", "Ñandú", "Rex & Söhne", "Ólafur", "Łatek"}
	families = []string{"Łukasiewicz", "Ångström", "Nguyễn", "山田", "Þórðarson", "Παπαδόπουλος", "O'Brien-Sørensen", "לוי", "Ёлкин", "Ibáñez"}
	givens   = []string{"Żaneta", "Søren", "Thị Hương", "花子", "Zoë", "Ἀλέξανδρος", "עמית", "Владимир", "José \"Pepe\""}
	decimals = []string{"1.50", "4.25", "31.70", "0.30", "12.5", "540.125"}
)

// makeRecords returns the records of a client. Their ids begin with its name, and they have the
// tag urn:clients|{owner}.
func makeRecords(owner string) []*record {
	var records []*record
	for _, kind := range recordTypes {
		for i := range kind.count {
			number := len(records)
			id := fmt.Sprintf("%s-%s-%d", owner, strings.ToLower(kind.name), i)
			var body bytes.Buffer
			err := bodyTemplates.ExecuteTemplate(&body, strings.ToLower(kind.name)+".json", map[string]any{
				"ID": id, "Owner": owner,
				"Number": fmt.Sprintf("%02d", number), "Digit": i % 3,
				"Extended": i%2 == 0, // some of them have extensions of primitive elements
				"Animal":   animals[number%len(animals)],
				"Family":   families[number%len(families)],
				"Given":    givens[number%len(givens)],
				"Decimal":  decimals[number%len(decimals)],
			})
			Expect(err).NotTo(HaveOccurred())
			records = append(records, &record{reference: kind.name + "/" + id, body: body.Bytes()})
		}
	}
	return records
}

// store creates a record at a site.
func (r *record) store(site string) {
	answer := send(http.MethodPut, site, r.reference, r.body)
	Expect(answer.status).To(Equal(http.StatusCreated), "%s: %s", r.reference, answer.body)
	r.first = answer.body
}
