// Exercises a site's FHIR API with fhir-kit-client; see harness.mjs.
import assert from 'node:assert/strict';
import { Client } from 'fhir-kit-client';
import {
  atomic, base as baseUrl, batchBundle, checkBatch, checkOutcome, checkTransaction, criteria, failure, patient, patientIds, run, step,
  tag, token as bearerToken, transactionBundle, writeBack,
} from './harness.mjs';

const client = new Client({ baseUrl, bearerToken });

// refused expects a request to be answered with a status and an OperationOutcome.
const refused = async (status, code, request) => {
  const error = await failure(request);
  assert.equal(error.response?.status, status, error.message);
  checkOutcome(error.response.data, code);
};

await step('capabilities', async () => {
  const statement = await new Client({ baseUrl }).capabilityStatement();
  assert.equal(statement.resourceType, 'CapabilityStatement');
  assert.equal(statement.implementation.url, baseUrl);
  await refused(401, 'login_required', new Client({ baseUrl }).search({ resourceType: 'Patient' }));
});

await writeBack(
  (resourceType, id) => client.read({ resourceType, id }),
  (body) => client.update({ resourceType: body.resourceType, id: body.id, body }),
);

let rex;
await step('create', async () => {
  rex = await client.create({ resourceType: 'Patient', body: patient('rex') });
  const { response } = Client.httpFor(rex);
  assert.equal(response.status, 201);
  assert.equal(response.headers.get('location'), `${baseUrl}/Patient/${rex.id}/_history/1`);
  assert.deepEqual(await client.read({ resourceType: 'Patient', id: rex.id }), rex);
  assert.deepEqual(await client.resolve({ reference: `Patient/${rex.id}` }), rex);
});

await step('conditional create', async () => {
  const again = await client.create({ resourceType: 'Patient', body: patient('rex'), options: { headers: { 'If-None-Exist': criteria('rex') } } });
  assert.deepEqual(again, rex);
});

await step('conditional update', async () => {
  rex = await client.update({ resourceType: 'Patient', searchParams: { identifier: rex.identifier[0].value }, body: { ...rex, gender: 'male' } });
  assert.equal(rex.meta.versionId, '2');
});

await step('vread', async () => {
  const vread = (version) => client.vread({ resourceType: 'Patient', id: rex.id, version });
  assert.equal((await vread('1')).gender, undefined);
  assert.deepEqual(await vread('2'), rex);
});

await step('patch', async () => {
  rex = await client.patch({ resourceType: 'Patient', id: rex.id, jsonPatch: [
    { op: 'test', path: '/gender', value: 'male' },
    { op: 'add', path: '/active', value: false },
  ] });
  assert.equal(rex.active, false);
  assert.equal(rex.meta.versionId, '3');
  await refused(409, 'patch_test_failed', client.patch({ resourceType: 'Patient', id: rex.id, jsonPatch: [{ op: 'test', path: '/gender', value: 'other' }] }));
});

const methods = (bundle) => bundle.entry.map((entry) => entry.request.method);

await step('history', async () => {
  assert.deepEqual(methods(await client.history({ resourceType: 'Patient', id: rex.id })), ['PATCH', 'PUT', 'POST']);
});

await step('history of the site', async () => {
  const ofType = await client.history({ resourceType: 'Patient' });
  assert.equal(ofType.type, 'history');
  assert.equal(ofType.entry[0].resource.id, rex.id);
  assert((await client.history({})).total > ofType.total);
});

// allPages returns the ids of the patients with the tag.
const allPages = async (options) => {
  const found = [];
  let page = await client.resourceSearch({ resourceType: 'Patient', searchParams: { _tag: tag, _count: 5 }, options });
  while (page) {
    assert.equal(page.type, 'searchset');
    assert(page.entry.length <= 5);
    found.push(...page.entry.map((entry) => entry.resource.id));
    page = page.link.some((link) => link.relation === 'next') ? await client.nextPage({ bundle: page }) : undefined;
  }
  return found.sort();
};

await step('all pages', async () => assert.deepEqual(await allPages({}), patientIds));
await step('search by POST', async () => assert.deepEqual(await allPages({ postSearch: true }), patientIds));

await step('include', async () => {
  const page = await client.resourceSearch({ resourceType: 'RelatedPerson', searchParams: { _tag: tag, _include: 'RelatedPerson:patient' } });
  const included = page.entry.filter((entry) => entry.search.mode === 'include').map((entry) => entry.resource);
  assert(included.length > 0 && included.every((resource) => patientIds.includes(resource.id)));
});

await step('batch', async () => checkBatch(await client.batch({ body: batchBundle(rex.id) }), rex.id));

await step('transaction', async () => {
  const one = await client.transaction({ body: { resourceType: 'Bundle', type: 'transaction', entry: [
    { fullUrl: 'urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a', request: { method: 'POST', url: 'Patient', ifNoneExist: criteria('rex') }, resource: patient('rex') },
    { request: { method: 'POST', url: 'RelatedPerson' }, resource: { resourceType: 'RelatedPerson', patient: { reference: 'urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a' } } },
  ] } });
  assert.equal(one.entry[1].resource.patient.reference, `Patient/${rex.id}`);
  if (!atomic) {
    await refused(501, 'not_supported', client.transaction({ body: transactionBundle() }));
    return;
  }
  const stale = { request: { method: 'PUT', url: `Patient/${run}`, ifMatch: 'W/"999"' }, resource: patient('put', { id: run }) };
  const bundle = transactionBundle();
  await refused(412, 'version_conflict', client.transaction({ body: { ...bundle, entry: [...bundle.entry, stale] } }));
  await refused(404, 'resource_not_found', client.read({ resourceType: 'Patient', id: `${run}-atomic` }));
  checkTransaction(await client.transaction({ body: bundle }));
});

await step('errors', async () => {
  const update = (body, headers) => client.update({ resourceType: 'Patient', id: rex.id, body, options: { headers } });
  await refused(404, 'resource_not_found', client.read({ resourceType: 'Patient', id: 'nobody' }));
  await refused(400, 'invalid_query', client.resourceSearch({ resourceType: 'Patient', searchParams: { colour: 'brown' } }));
  await refused(400, 'invalid_id', update({ ...rex, id: 'other' }));
  await refused(412, 'version_conflict', update({ ...rex, active: true }, { 'If-Match': 'W/"1"' }));
});

await step('$validate', async () => {
  const judge = (resource) => client.operation({ name: 'validate', resourceType: 'Patient', input: resource });
  const errors = (outcome) => outcome.issue.filter((issue) => issue.severity === 'error');
  assert.equal(errors(await judge(patient('x'))).length, 0);
  assert.notEqual(errors(await judge({ resourceType: 'Patient', active: 'yes' })).length, 0);
});

await step('delete', async () => {
  await client.delete({ resourceType: 'Patient', id: rex.id });
  await refused(410, 'deleted', client.read({ resourceType: 'Patient', id: rex.id }));
  await client.delete({ resourceType: 'Patient', id: rex.id });
  assert.equal(methods(await client.history({ resourceType: 'Patient', id: rex.id }))[0], 'DELETE');
});
