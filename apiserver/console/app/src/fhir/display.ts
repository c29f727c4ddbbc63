// Readable texts of FHIR's datatypes and records.

import type { Json } from '../api/errors';

const animal = 'http://hl7.org/fhir/StructureDefinition/patient-animal';

/** concept returns the readable text of a CodeableConcept. */
export function concept(value: Json): string {
  const coding = value?.coding?.[0];
  return value?.text ?? coding?.display ?? coding?.code ?? '';
}

/** humanName returns the readable text of a HumanName. */
export function humanName(value: Json): string {
  if (!value) return '';
  if (value.text) return value.text;
  return [...(value.prefix ?? []), ...(value.given ?? []), value.family, ...(value.suffix ?? [])].filter(Boolean).join(' ');
}

/** address returns the readable text of an Address. */
export function address(value: Json): string {
  if (!value) return '';
  if (value.text) return value.text;
  return [...(value.line ?? []), [value.postalCode, value.city].filter(Boolean).join(' '), value.state, value.country].filter(Boolean).join(', ');
}

/** contacts returns the phone numbers and other addresses of a record, each with its use. A ContactPoint may lack a value. */
export function contacts(resource: Json): string {
  const known: Json[] = (resource.telecom ?? []).filter((t: Json) => t.value);
  return known.map((t) => (t.use ? `${t.value} (${t.use})` : t.value)).join(', ');
}

export interface Animal {
  species: string;
  breed: string;
  genderStatus: string;
}

/** animalOf returns what the extension patient-animal says. */
export function animalOf(patient: Json): Animal {
  const parts: Json[] = patient?.extension?.find((e: Json) => e.url === animal)?.extension ?? [];
  const part = (url: string) => concept(parts.find((e) => e.url === url)?.valueCodeableConcept);
  return { species: part('species'), breed: part('breed'), genderStatus: part('genderStatus') };
}

/** titleOf returns the name by which people know a record, or its type and id. */
export function titleOf(resource: Json): string {
  if (!resource) return '';
  const name = resource.name;
  const deviceName = resource.deviceName?.[0]?.name;
  const role = [resource.practitioner?.display, concept(resource.code?.[0])].filter(Boolean).join(', ');
  const title = Array.isArray(name) ? humanName(name[0]) : (name ?? deviceName ?? '');
  return title || (resource.resourceType === 'PractitionerRole' ? role : '') || (resource.resourceType ? `${resource.resourceType}/${resource.id}` : '');
}

/** relation returns what a RelatedPerson is to the patient. */
export function relation(person: Json): string {
  return (person?.relationship ?? []).map(concept).filter(Boolean).join(', ');
}

/** systems are names of systems of identifiers for which people know a shorter one than the URI. */
const systems: Record<string, string> = { 'urn:iso:std:iso:11784': 'Microchip' };

/** identifierName returns what kind of identifier one is. */
export const identifierName = (value: Json): string => concept(value.type) || systems[value.system] || 'Identifier';

/** identifier returns the value of the first identifier. */
export function identifier(resource: Json): string {
  return resource?.identifier?.[0]?.value ?? '';
}

export interface Column {
  name: string;
  value: (resource: Json, included: Json[]) => string;
  mono?: boolean;
}

const telecom = (r: Json) => (r.telecom ?? []).map((t: Json) => t.value).filter(Boolean).slice(0, 2).join(', ');
const yesNo = (value: Json) => (value === undefined ? '' : value ? 'yes' : 'no');
const place = (r: Json) => address(Array.isArray(r.address) ? r.address[0] : r.address);
const reference = (value: Json) => value?.display ?? value?.reference ?? concept(value?.identifier?.type) ?? '';
const title: Column = { name: 'Name', value: titleOf };
const chip: Column = { name: 'Identifier', value: identifier, mono: true };

/** ownersOf returns the names of the related persons of a patient among other records. */
export function ownersOf(patient: Json, others: Json[]): string {
  return others
    .filter((r) => r.resourceType === 'RelatedPerson' && r.patient?.reference?.endsWith(`Patient/${patient.id}`))
    .map(titleOf)
    .join(', ');
}

const columns: Record<string, Column[]> = {
  Patient: [
    title,
    { name: 'Species', value: (r) => animalOf(r).species },
    { name: 'Breed', value: (r) => animalOf(r).breed },
    { name: 'Gender', value: (r) => [r.gender, animalOf(r).genderStatus].filter(Boolean).join(', ') },
    { name: 'Born', value: (r) => r.birthDate ?? '' },
    { name: 'Owner', value: ownersOf },
    chip,
  ],
  RelatedPerson: [title, { name: 'Relation', value: relation }, { name: 'Patient', value: (r) => reference(r.patient) }, { name: 'Contact', value: telecom }],
  Person: [title, { name: 'Gender', value: (r) => r.gender ?? '' }, { name: 'Contact', value: telecom }, chip],
  Practitioner: [title, { name: 'Qualification', value: (r) => concept(r.qualification?.[0]?.code) }, { name: 'Contact', value: telecom }, { name: 'Active', value: (r) => yesNo(r.active) }, chip],
  PractitionerRole: [
    { name: 'Practitioner', value: (r) => reference(r.practitioner) },
    { name: 'Role', value: (r) => (r.code ?? []).map(concept).join(', ') },
    { name: 'Organization', value: (r) => reference(r.organization) },
    { name: 'Active', value: (r) => yesNo(r.active) },
  ],
  Organization: [title, { name: 'Kind', value: (r) => concept(r.type?.[0]) }, { name: 'Address', value: place }, { name: 'Contact', value: telecom }],
  Location: [title, { name: 'Status', value: (r) => r.status ?? '' }, { name: 'Kind', value: (r) => concept(r.type?.[0]) }, { name: 'Address', value: place }],
  Device: [title, { name: 'Kind', value: (r) => concept(r.type) }, { name: 'Status', value: (r) => r.status ?? '' }, { name: 'Maker', value: (r) => r.manufacturer ?? '' }, { name: 'Serial number', value: (r) => r.serialNumber ?? '', mono: true }],
  Group: [title, { name: 'Kind', value: (r) => [r.type, concept(r.code)].filter(Boolean).join(', ') }, { name: 'Members', value: (r) => String(r.quantity ?? r.member?.length ?? '') }, chip],
  Endpoint: [title, { name: 'Status', value: (r) => r.status ?? '' }, { name: 'Connection', value: (r) => r.connectionType?.display ?? r.connectionType?.code ?? '' }, { name: 'Address', value: (r) => r.address ?? '', mono: true }],
};

/** columnsOf returns the columns of the table of a type. */
export function columnsOf(type: string): Column[] {
  return columns[type] ?? [title, { name: 'Kind', value: (r) => concept(Array.isArray(r.type) ? r.type[0] : r.type) }, { name: 'Status', value: (r) => r.status ?? yesNo(r.active) }, chip];
}
