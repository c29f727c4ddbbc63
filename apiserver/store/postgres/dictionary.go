package postgres

import "github.com/klauspost/compress/s2"

// dictionary is the S2 dictionary for bodies. It has texts that occur in many bodies, because a
// single body is too short to contain many repetitions. The most frequent texts come last. Stored
// bodies can be decompressed only with it, so it must not change: another dictionary needs another
// codec.
var dictionary = s2.MakeDict([]byte(dictionaryText), nil)

const dictionaryText = `"qualification":[{"issuer":{"display":""}}],"alias":[""],"photo":[{"contentType":"image/jpeg","data":""}],` +
	`"availableTime":[{"daysOfWeek":["mon","tue","wed","thu","fri"],"availableStartTime":"08:00:00","availableEndTime":"17:00:00"}],` +
	`"locationId":"","resourceId":"","startAt":"2026-01-01T09:00:00+10:00","endAt":"","isActive":true,"isBooked":false,"serviceType":{"code":"","system":"","display":""},"notes":"","extensions":{},` +
	`"resourceType":"PractitionerRole","resourceType":"HealthcareService","resourceType":"Organization","resourceType":"Location","resourceType":"Device",` +
	`"position":{"longitude":-83.69,"latitude":42.25},"physicalType":{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/location-physical-type","code":"ro","display":"Room"}]},"mode":"instance",` +
	`"contact":[{"relationship":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/v2-0131","code":"N"}]}],"name":{"family":"","given":[""]}}],"communication":[{"language":{"coding":[{"system":"urn:ietf:bcp:47","code":"en"}]},"preferred":true}],` +
	`"specialty":[{"coding":[{"system":"http://snomed.info/sct","code":"","display":""}]}],"code":[{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/practitioner-role","code":"doctor"}]}],` +
	`"period":{"start":"2020-01-01","end":"2021-"},"status":"active","partOf":{"reference":"Organization/"},"practitioner":{"reference":"Practitioner/"},"organization":{"reference":"Organization/"},"location":[{"reference":"Location/"}],` +
	`"address":[{"use":"work","type":"both","text":"","line":[""],"city":"","district":"","state":"","postalCode":"","country":""}],` +
	`"text":{"status":"generated","div":"<div xmlns=\"http://www.w3.org/1999/xhtml\"></div>"},"deceasedBoolean":false,"maritalStatus":{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/v3-MaritalStatus","code":"M"}]},` +
	`"managingOrganization":{"reference":"Organization/"},"generalPractitioner":[{"reference":"Practitioner/","display":""}],` +
	`"type":{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/v2-0203","code":"MR"}]},"assigner":{"display":""},` +
	`"extension":[{"url":"http://hl7.org/fhir/StructureDefinition/patient-animal","extension":[{"url":"species","valueCodeableConcept":{"coding":[{"system":"http://snomed.info/sct","code":"","display":"Dog"}]}},` +
	`{"url":"breed","valueCodeableConcept":{"coding":[{"system":"http://hl7.org/fhir/animal-species","code":"","display":""}]}}]}],` +
	`{"resourceType":"Practitioner",{"resourceType":"Patient","id":"","meta":{"tag":[{"system":"","code":""}]},"active":true,"identifier":[{"use":"official","system":"urn:oid:","value":""}],` +
	`"name":[{"use":"usual","text":"","family":"","given":[""],"prefix":["Dr"]}],"gender":"female","gender":"male","birthDate":"20","telecom":[{"system":"phone","value":"","use":"home"},{"system":"email","value":"@"}]`
