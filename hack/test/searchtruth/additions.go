package searchtruth

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Addition is a search parameter that neither R4 nor the contract defines. The server has a compiled
// form of its expression; here fhirpath.js evaluates it.
type Addition struct {
	// ID is the id of HL7's definition. It is empty if there is none.
	ID, Code, Type, Expression string
	Base, Target               []string
}

// Additions reads the additions of the checkout. bin is the folder bin/ of the checkout.
func Additions(bin string) ([]Addition, error) {
	text, err := os.ReadFile(filepath.Join(bin, "..", "apiserver", "fhir", "r4", "search_additions.json"))
	if err != nil {
		return nil, err
	}
	var all []Addition
	err = json.Unmarshal(text, &all)
	return all, err
}

// Samples has a value of each FHIR type that extensions of additions may have, as JSON.
var Samples = map[string]string{
	"Address":         `{"city":"Wien","line":["Ring 1"]}`,
	"boolean":         `true`,
	"code":            `"made"`,
	"CodeableConcept": `{"coding":[{"system":"urn:c","code":"Made"},{"code":"x","display":"Hündin"}],"text":"made"}`,
	"Coding":          `{"system":"urn:c","code":"made","display":"made"}`,
	"ContactPoint":    `{"system":"phone","value":"555"}`,
	"date":            `"2020-05-03"`,
	"dateTime":        `"2020-05-03T10:00:00Z"`,
	"HumanName":       `{"family":"Müller","given":["Ann"]}`,
	"Identifier":      `{"system":"urn:i","value":"1"}`,
	"Period":          `{"start":"2020-05-03","end":"2021-05-03"}`,
	"Reference":       `{"reference":"Patient/example"}`,
	"string":          `"Müller"`,
	"uri":             `"urn:made"`,
}

// inExtensions matches the expressions of additions that find the values of an extension.
var inExtensions = regexp.MustCompile(`^\w+((?:\.extension\('[^']+'\))+)\.value\.ofType\((\w+)\)$`)

// ValueType returns the FHIR type of the values of an addition that searches an extension. It is empty
// for other additions.
func (a Addition) ValueType() string {
	if parts := inExtensions.FindStringSubmatch(a.Expression); parts != nil {
		return parts[2]
	}
	return ""
}

// Extension returns the extension that an addition with a ValueType searches, as JSON. value is its
// value, as JSON of the type fhirType. The addition finds the value only if fhirType is the ValueType.
func (a Addition) Extension(fhirType, value string) string {
	urls := regexp.MustCompile(`'[^']+'`).FindAllString(a.Expression, -1)
	text := fmt.Sprintf(`"value%s%s":%s`, strings.ToUpper(fhirType[:1]), fhirType[1:], value)
	for _, url := range slices.Backward(urls) {
		text = fmt.Sprintf(`"extension":[{"url":"%s",%s}]`, strings.Trim(url, "'"), text)
	}
	return strings.TrimSuffix(strings.TrimPrefix(text, `"extension":[`), "]")
}

// Extensions returns a member "extension" with a value for each addition that searches an extension of
// a resource type, as JSON with a comma after it. It is empty if there is no such addition. values
// override Samples.
func Extensions(bin, typ string, values map[string]string) (string, error) {
	all, err := Additions(bin)
	if err != nil {
		return "", err
	}
	samples := maps.Clone(Samples)
	maps.Copy(samples, values)
	var found []string
	for _, a := range all {
		valueType := a.ValueType()
		if valueType == "" || !slices.Contains(a.Base, typ) {
			continue
		}
		if samples[valueType] == "" {
			return "", fmt.Errorf("searchtruth.Samples has no %s, the type of %s's values", valueType, a.Code)
		}
		found = append(found, a.Extension(valueType, samples[valueType]))
	}
	if len(found) == 0 {
		return "", nil
	}
	return `"extension":[` + strings.Join(found, ",") + `],`, nil
}
