// The records that the console shows in the test.

import { readFileSync } from 'node:fs';
import { api, tokens } from './harness.mjs';

const animal = (species, breed, genderStatus) => ({
  url: 'http://hl7.org/fhir/StructureDefinition/patient-animal',
  extension: [
    { url: 'species', valueCodeableConcept: { text: species } },
    { url: 'breed', valueCodeableConcept: { text: breed } },
    { url: 'genderStatus', valueCodeableConcept: { text: genderStatus } },
  ],
});

/** photo is a drawing of a dog. */
const photo = readFileSync(new URL('dog.png', import.meta.url)).toString('base64');

const rex = {
  resourceType: 'Patient', id: 'rex', active: true, name: [{ given: ['Rex'], family: 'Miller' }], gender: 'male', birthDate: '2020-05-04',
  identifier: [{ system: 'urn:iso:std:iso:11784', value: '985112003456789' }],
  extension: [animal('Dog', 'Golden Retriever', 'neutered')],
  generalPractitioner: [{ reference: 'Practitioner/ann' }],
  photo: [{ contentType: 'image/png', data: photo }],
  text: { status: 'generated', div: '<div xmlns="http://www.w3.org/1999/xhtml"><p style="color:red">Rex, <b>a dog</b></p><img src="https://tracker.example.org/a.png" alt="x"/></div>' },
};

export const resource = '0198c4f2-7d1e-7c3a-9b5f-000000000002';
const location = '0198c4f2-7d1e-7c3a-9b5f-000000000001';

/** slot has ids of slots: two that overlap, both free. */
export const slot = { first: '0198c4f2-7d1e-7c3a-9b5f-00000000a001', overlapping: '0198c4f2-7d1e-7c3a-9b5f-00000000a002' };

export async function prepare() {
  const put = (r, token) => api('PUT', `fhir/${r.resourceType}/${r.id}`, r, token);
  await put({ resourceType: 'Practitioner', id: 'ann', active: true, name: [{ prefix: ['Dr.'], given: ['Ann'], family: 'Lee' }] });
  await put({ resourceType: 'Practitioner', id: resource, active: true, name: [{ prefix: ['Dr.'], given: ['Ben'], family: 'Ortiz' }] });
  await put({ resourceType: 'Location', id: 'room-1', identifier: [{ system: 'urn:ietf:rfc:3986', value: `urn:uuid:${location}` }], status: 'active', name: 'Room 1' });
  await put(rex);
  await put({ ...rex, name: [{ given: ['Rex'], family: 'Moore' }], birthDate: '2020-05-14' });
  await put({ resourceType: 'RelatedPerson', id: 'mo', patient: { reference: 'Patient/rex' }, name: [{ given: ['Mo'], family: 'Moore' }], relationship: [{ text: 'Owner' }] });
  await put({ resourceType: 'Patient', id: 'secret', name: [{ given: ['Secret'] }], meta: { security: [{ system: 'http://terminology.hl7.org/CodeSystem/v3-Confidentiality', code: 'R' }] } }, tokens.auditor);
  const species = [['Luna', 'Cat', 'Siamese'], ['Bella', 'Dog', 'Beagle'], ['Coco', 'Rabbit', 'Lop'], ['Max', 'Horse', 'Haflinger']];
  const herd = Array.from({ length: 30 }, (_, i) => {
    const [name, kind, breed] = species[i % species.length];
    return { resource: { resourceType: 'Patient', name: [{ given: [`${name} ${i}`] }], gender: i % 2 ? 'male' : 'female', birthDate: `201${i % 9}-0${1 + (i % 9)}`, extension: [animal(kind, breed, 'intact')], identifier: [{ system: 'urn:iso:std:iso:11784', value: `98511200${1000000 + i}` }] }, request: { method: 'POST', url: 'Patient' } };
  });
  await api('POST', 'fhir', { resourceType: 'Bundle', type: 'batch', entry: herd });
  await slots();
}

/** slots makes a week of slots: half hours of one vet, and one that overlaps the first. */
async function slots() {
  const today = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Vienna' }).format(new Date());
  const monday = new Date(`${today}T00:00:00Z`);
  monday.setUTCDate(monday.getUTCDate() - ((monday.getUTCDay() + 6) % 7));
  const day = monday.toISOString().slice(0, 10);
  const common = { locationId: location, resourceId: resource, serviceType: { code: 'vax', display: 'Vaccination' } };
  const last = new Date(monday);
  last.setUTCDate(last.getUTCDate() + 4);
  await api('POST', 'ahds/v1/availability-slot/generate', {
    ...common, from: day, to: last.toISOString().slice(0, 10), durationMinutes: 60,
    openingHours: [{ days: ['tuesday', 'wednesday', 'thursday', 'friday'], opensAt: '09:00', closesAt: '12:00' }],
  });
  await api('POST', 'ahds/v1/availability-slot', { ...common, availabilitySlotId: slot.first, startAt: `${day}T09:00:00Z`, endAt: `${day}T09:30:00Z` });
  await api('POST', 'ahds/v1/availability-slot', { ...common, availabilitySlotId: slot.overlapping, startAt: `${day}T09:15:00Z`, endAt: `${day}T09:45:00Z` });
  await api('POST', 'ahds/v1/availability-slot', { ...common, startAt: `${day}T13:00:00Z`, endAt: `${day}T13:30:00Z`, isActive: false });
}
