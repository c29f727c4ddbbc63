// Exercises a site's FHIR API with fhirclient, the SMART on FHIR library; see harness.mjs.
import assert from 'node:assert/strict';
import smart from 'fhirclient';
import {
  atomic, base, batchBundle, checkBatch, checkOutcome, checkTransaction, criteria, failure, patient, patientIds, step, tag, token,
  transactionBundle, writeBack,
} from './harness.mjs';

const memory = () => ({ get: async () => undefined, set: async (_, value) => value, unset: async () => true });
const client = smart({}, {}, memory).client({ serverUrl: base, tokenResponse: { access_token: token } });

const post = (url, body) => client.request({ url, method: 'POST', headers: { 'Content-Type': 'application/fhir+json' }, body: JSON.stringify(body) });

// refused expects a request to be answered with a status and an OperationOutcome, which the library
// appends to the message of its error.
const refused = async (status, code, request) => {
  const error = await failure(request);
  assert.equal(error.status, status, error.message);
  checkOutcome(JSON.parse(error.message.slice(error.message.indexOf('{'))), code);
};

await step('capabilities', async () => {
  const statement = await client.request('metadata');
  assert.equal(statement.resourceType, 'CapabilityStatement');
  assert.equal(statement.implementation.url, base);
  assert.equal(await client.getFhirVersion(), '4.0.1');
});

await writeBack((type, id) => client.request(`${type}/${id}`), (resource) => client.update(resource));

let rex;
await step('create', async () => {
  rex = await client.create(patient('rex'));
  assert.equal(rex.meta.versionId, '1');
  assert.deepEqual(await client.request(`Patient/${rex.id}`), rex);
});

await step('conditional create', async () => {
  assert.deepEqual(await client.create(patient('rex'), { headers: { 'If-None-Exist': criteria('rex') } }), rex);
});

await step('vread', async () => {
  const first = rex;
  rex = await client.update({ ...rex, active: true });
  assert.equal(rex.meta.versionId, '2');
  assert.deepEqual(await client.request(`Patient/${rex.id}/_history/1`), first);
});

await step('patch', async () => {
  rex = await client.patch(`Patient/${rex.id}`, [{ op: 'test', path: '/active', value: true }, { op: 'replace', path: '/active', value: false }]);
  assert.equal(rex.meta.versionId, '3');
});

await step('history', async () => {
  const history = await client.request(`Patient/${rex.id}/_history`);
  assert.deepEqual(history.entry.map((entry) => entry.resource.meta.versionId), ['3', '2', '1']);
});

await step('all pages', async () => {
  const query = new URLSearchParams({ _tag: tag, _count: 5 });
  const found = await client.request(`Patient?${query}`, { pageLimit: 0, flat: true });
  assert.deepEqual(found.map((resource) => resource.id).sort(), patientIds);
  const walked = [];
  for await (const resource of client.resources(`Patient?${query}`)) {
    walked.push(resource.id);
  }
  assert.deepEqual(walked.sort(), patientIds);
});

await step('include', async () => {
  const page = await client.request(`RelatedPerson?${new URLSearchParams({ _tag: tag, _include: 'RelatedPerson:patient' })}`, { resolveReferences: 'entry.0.resource.patient' });
  const included = page.entry.filter((entry) => entry.search.mode === 'include').map((entry) => entry.resource);
  assert(included.length > 0 && included.every((resource) => patientIds.includes(resource.id)));
});

await step('batch', async () => checkBatch(await post(base, batchBundle(rex.id)), rex.id));

await step('transaction', async () => {
  if (atomic) {
    checkTransaction(await post(base, transactionBundle()));
  } else {
    await refused(501, 'not_supported', post(base, transactionBundle()));
  }
});

await step('errors', async () => {
  await refused(404, 'resource_not_found', client.request('Patient/nobody'));
  await refused(400, 'invalid_query', client.request('Patient?colour=brown'));
  await refused(400, 'invalid_code', client.update({ ...rex, gender: 'brown' }));
  await refused(412, 'version_conflict', client.update({ ...rex, active: true }, { headers: { 'If-Match': 'W/"1"' } }));
});

await step('delete', async () => {
  await client.delete(`Patient/${rex.id}`);
  await refused(410, 'deleted', client.request(`Patient/${rex.id}`));
});
