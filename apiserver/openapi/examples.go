package openapi

// resourceExamples are examples of resources, by type.
var resourceExamples = map[string]string{
	"Patient": `{"resourceType":"Patient","id":"rex","identifier":[{"system":"urn:iso:std:iso:11784","value":"985112345678903"}],` +
		`"name":[{"text":"Rex"}],"gender":"male","birthDate":"2021-04",` +
		`"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[{"url":"species","valueCodeableConcept":{"coding":[{"system":"http://hl7.org/fhir/animal-species","code":"canislf"}],"text":"Dog"}}]}]}`,
	"RelatedPerson": `{"resourceType":"RelatedPerson","id":"ann","patient":{"reference":"Patient/rex"},"name":[{"family":"Lindqvist","given":["Ann"]}],` +
		`"telecom":[{"system":"phone","value":"+1 555 0100"}]}`,
	"Practitioner":     `{"resourceType":"Practitioner","id":"dr-reed","name":[{"family":"Reed","given":["Dana"],"prefix":["Dr."]}]}`,
	"PractitionerRole": `{"resourceType":"PractitionerRole","id":"reed-surgeon","practitioner":{"reference":"Practitioner/dr-reed"},"code":[{"text":"Surgeon"}]}`,
	"Organization":     `{"resourceType":"Organization","id":"oak","name":"Oak Street Animal Hospital"}`,
	"Location":         `{"resourceType":"Location","id":"room-1","status":"active","name":"Examination room 1","managingOrganization":{"reference":"Organization/oak"}}`,
	"Device":           `{"resourceType":"Device","id":"xray-1","status":"active","deviceName":[{"name":"X-ray, ground floor","type":"user-friendly-name"}]}`,
	"Group":            `{"resourceType":"Group","id":"herd","type":"animal","actual":true,"name":"Herd of the Hill farm","quantity":31}`,
	"Endpoint": `{"resourceType":"Endpoint","id":"lab","status":"active","connectionType":{"system":"http://terminology.hl7.org/CodeSystem/endpoint-connection-type","code":"hl7-fhir-rest"},` +
		`"payloadType":[{"text":"any"}],"address":"https://lab.example.org/fhir"}`,
}

// ahdsExamples are examples of requests that create an object, by kind.
var ahdsExamples = map[string]string{
	"AvailabilitySlot":     `{"startAt":"2031-03-24T09:00:00Z","endAt":"2031-03-24T09:30:00Z","locationId":"0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b70","resourceId":"0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b71","serviceType":{"code":"vaccination"}}`,
	"EventGroup":           `{"name":"Vaccination day","status":"active","category":"prevention"}`,
	"AvailabilitySlotFeed": `{"resourceId":"0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b71","description":"X-ray"}`,
	"WebhookEvent":         `{"eventType":"appointment.created","isEnabled":true}`,
	"Webhook":              `{"eventType":"appointment.created","webhookUrl":"https://example.org/hook","isActive":true}`,
}

// Examples of other requests.
const (
	scheduleExample = `{"timeZone":"Europe/Vienna","from":"2031-03-24","to":"2031-03-28","durationMinutes":30,` +
		`"openingHours":[{"days":["monday","wednesday"],"opensAt":"09:00","closesAt":"12:00"}],` +
		`"locationId":"0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b70","resourceId":"0198c4f2-7d1e-7c3a-9b5f-2e6d8a1c4b71"}`
	eventExample = `{"type":"appointment.created","subject":"Appointment/17","data":{"id":"17"}}`
)
