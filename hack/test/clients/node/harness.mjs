// What the programs of this folder share. Each exercises a site's FHIR API with one client library
// and writes "ok: {step}" after each step that succeeded; it ends at the first that fails.
//
// Environment: FHIR_BASE is the address of the site's API, FHIR_TOKEN a token that may read and write
// there. FHIR_RECORDS lists records (type and id) to read and write back, which all have the tag
// FHIR_TAG. FHIR_LANGUAGE is the value to change their language to. FHIR_ATOMIC is yes where the
// site can write several records in one transaction.
import assert from 'node:assert/strict';

const env = (name) => process.env[name] ?? assert.fail(`set ${name}`);
export const base = env('FHIR_BASE');
export const token = env('FHIR_TOKEN');
export const tag = env('FHIR_TAG');
export const language = env('FHIR_LANGUAGE');
export const atomic = env('FHIR_ATOMIC') === 'yes';
export const references = env('FHIR_RECORDS').split(' ').map((reference) => {
  const [type, id] = reference.split('/');
  return { type, id };
});
export const patientIds = references.filter(({ type }) => type === 'Patient').map(({ id }) => id).sort();

// run sets the records of this run apart from those of others.
export const run = `run-${Date.now()}`;
export const identifierSystem = 'urn:clients:run';
export const identifier = (value) => [{ system: identifierSystem, value: `${run}-${value}` }];
export const criteria = (value) => `identifier=${identifierSystem}|${run}-${value}`;

// patient is a Patient to create.
export const patient = (value, more = {}) => ({
  resourceType: 'Patient',
  identifier: identifier(value),
  name: [{ text: 'Жучка 🐕', family: "O'Brien-Ångström", given: ['Ñandú'] }],
  birthDate: '2021-03-04',
  _birthDate: { extension: [{ url: 'http://hl7.org/fhir/StructureDefinition/patient-birthTime', valueDateTime: '2021-03-04T05:06:07Z' }] },
  contained: [{ resourceType: 'Organization', id: 'breeder', name: '動物病院' }],
  managingOrganization: { reference: '#breeder' },
  ...more,
});

const organizationUrl = 'urn:uuid:0d4c6f4a-6b0b-4c0e-9a55-6a1d5b1f7c11';

// batchBundle reads and creates. One of its entries creates what exists and another reads what does not.
export const batchBundle = (existing) => ({
  resourceType: 'Bundle',
  type: 'batch',
  entry: [
    { request: { method: 'GET', url: `Patient/${existing}` } },
    { request: { method: 'POST', url: 'Patient' }, resource: patient('batch') },
    { request: { method: 'POST', url: 'Patient', ifNoneExist: criteria('rex') }, resource: patient('rex') },
    { request: { method: 'GET', url: 'Patient/nobody' } },
    { request: { method: 'PUT', url: `Patient/${run}` }, resource: patient('put', { id: run }) },
  ],
});

// checkBatch checks the answer to batchBundle.
export const checkBatch = (answer, existing) => {
  assert.equal(answer.type, 'batch-response');
  assert.deepEqual(answer.entry.map((entry) => entry.response.status.slice(0, 3)), ['200', '201', '200', '404', '201']);
  assert.equal(answer.entry[0].resource.id, existing);
  assert.equal(answer.entry[2].resource.id, existing);
  checkOutcome(answer.entry[3].response.outcome, 'resource_not_found');
};

// transactionBundle creates an organization and a patient that refers to it.
export const transactionBundle = () => ({
  resourceType: 'Bundle',
  type: 'transaction',
  entry: [
    { fullUrl: organizationUrl, request: { method: 'POST', url: 'Organization' }, resource: { resourceType: 'Organization', name: `${run} – Tierheim` } },
    { request: { method: 'PUT', url: `Patient/${run}-atomic` }, resource: patient('atomic', { id: `${run}-atomic`, managingOrganization: { reference: organizationUrl }, contained: undefined }) },
  ],
});

// checkTransaction checks the answer to transactionBundle.
export const checkTransaction = (answer) => {
  assert.equal(answer.type, 'transaction-response');
  assert.deepEqual(answer.entry.map((entry) => entry.response.status.slice(0, 3)), ['201', '201']);
  const [organization, written] = answer.entry.map((entry) => entry.resource);
  assert.equal(written.managingOrganization.reference, `Organization/${organization.id}`);
};

// checkOutcome checks an OperationOutcome that a library made available.
export const checkOutcome = (outcome, code) => {
  assert.equal(outcome?.resourceType, 'OperationOutcome');
  assert.equal(outcome.issue[0].severity, 'error');
  assert.equal(outcome.issue[0].details.coding[0].code, code, outcome.issue[0].diagnostics);
};

// failure returns the error of a request that has to fail.
export const failure = (request) => request.then(() => assert.fail('the request succeeded'), (error) => error);

// step runs one part and says that it succeeded.
export const step = async (name, part) => {
  await part();
  console.log(`ok: ${name}`);
};

// writeBack writes every record back unchanged, then with another language, then unchanged again.
export const writeBack = (read, update) => step('write back', async () => {
  for (const { type, id } of references) {
    await update(await read(type, id));
    await update({ ...await read(type, id), language });
    const last = await read(type, id);
    assert.equal(last.language, language);
    assert.equal((await update(last)).meta.versionId, last.meta.versionId);
  }
});
