// Uses a site's FHIR API as an ordinary client does: with fhir-kit-client as it
// comes. FHIR_BASE is the address of the site's API, FHIR_TOKEN a token that may
// read and write there. The first thing that is not as FHIR has it ends it.
import assert from 'node:assert/strict';
import { Client } from 'fhir-kit-client';

const { FHIR_BASE: baseUrl, FHIR_TOKEN: bearerToken } = process.env;
assert(baseUrl && bearerToken, 'set FHIR_BASE and FHIR_TOKEN');

const client = new Client({ baseUrl, bearerToken });
const run = `run-${Date.now()}`;
const identifier = (value) => [{ system: 'urn:fhirclient', value: `${run}-${value}` }];
const patient = (value, more = {}) => ({ resourceType: 'Patient', identifier: identifier(value), ...more });

// refused expects a request to be answered with a status and an OperationOutcome.
const refused = async (status, request) => {
  const error = await request.then(() => assert.fail('the request succeeded'), (err) => err);
  assert.equal(error.response?.status, status, error.message);
  assert.equal(error.response.data.resourceType, 'OperationOutcome');
};

// step runs one part and says that it went well.
const step = async (name, part) => {
  await part();
  console.log(`ok: ${name}`);
};

await step('capabilities, without a token', async () => {
  const statement = await new Client({ baseUrl }).capabilityStatement();
  assert.equal(statement.resourceType, 'CapabilityStatement');
  assert.equal(statement.implementation.url, baseUrl);
  await refused(401, new Client({ baseUrl }).search({ resourceType: 'Patient' }));
});

let rex;
await step('create, read, vread', async () => {
  rex = await client.create({ resourceType: 'Patient', body: patient('rex', { name: [{ text: 'Rex' }] }) });
  const { response } = Client.httpFor(rex);
  assert.equal(response.status, 201);
  assert.equal(response.headers.get('location'), `${baseUrl}/Patient/${rex.id}/_history/1`);
  assert.deepEqual(await client.read({ resourceType: 'Patient', id: rex.id }), rex);
  assert.deepEqual(await client.vread({ resourceType: 'Patient', id: rex.id, version: '1' }), rex);
  assert.deepEqual(await client.resolve({ reference: `Patient/${rex.id}` }), rex);
  await refused(404, client.read({ resourceType: 'Patient', id: 'nobody' }));
});

await step('update, with a version and by criteria', async () => {
  const update = (body, options) => client.update({ resourceType: 'Patient', id: rex.id, body, options });
  const updated = await update({ ...rex, active: true });
  assert.equal(updated.meta.versionId, '2');
  await refused(412, update({ ...rex, active: false }, { headers: { 'If-Match': 'W/"1"' } }));
  await refused(400, update({ ...rex, id: 'other' }));
  rex = await client.update({ resourceType: 'Patient', searchParams: { identifier: identifier('rex')[0].value }, body: { ...updated, gender: 'male' } });
  assert.equal(rex.meta.versionId, '3');
});

await step('patch', async () => {
  rex = await client.patch({ resourceType: 'Patient', id: rex.id, jsonPatch: [
    { op: 'test', path: '/gender', value: 'male' },
    { op: 'replace', path: '/active', value: false },
  ] });
  assert.equal(rex.active, false);
  assert.equal(rex.meta.versionId, '4');
  await refused(409, client.patch({ resourceType: 'Patient', id: rex.id, jsonPatch: [{ op: 'test', path: '/gender', value: 'other' }] }));
});

await step('search, by GET and by POST, page by page', async () => {
  for (let i = 0; i < 5; i++) {
    await client.create({ resourceType: 'Organization', body: { resourceType: 'Organization', name: 'herd', identifier: identifier('herd') } });
  }
  const value = identifier('herd')[0].value;
  for (const options of [{}, { postSearch: true }]) {
    const found = new Set();
    let page = await client.resourceSearch({ resourceType: 'Organization', searchParams: { identifier: value, _count: 2 }, options });
    assert.equal(page.type, 'searchset');
    assert.equal(page.total, 5);
    for (let pages = 0; page; pages++) {
      assert(pages < 3, 'there are too many pages');
      page.entry.forEach((entry) => found.add(entry.resource.id));
      page = page.link.some((link) => link.relation === 'next') ? await client.nextPage({ bundle: page }) : undefined;
    }
    assert.equal(found.size, 5);
  }
  await refused(400, client.resourceSearch({ resourceType: 'Organization', searchParams: { colour: 'brown' } }));
});

await step('history of a record, a type and the site', async () => {
  const methods = (bundle) => bundle.entry.map((entry) => entry.request.method);
  const ofRecord = await client.history({ resourceType: 'Patient', id: rex.id });
  assert.deepEqual(methods(ofRecord), ['PATCH', 'PUT', 'PUT', 'POST']);
  const ofType = await client.history({ resourceType: 'Patient' });
  assert.equal(ofType.type, 'history');
  assert.equal(ofType.entry[0].resource.id, rex.id);
  assert((await client.history({})).total > ofType.total);
});

await step('batch', async () => {
  const answer = await client.batch({ body: { resourceType: 'Bundle', type: 'batch', entry: [
    { request: { method: 'GET', url: `Patient/${rex.id}` } },
    { request: { method: 'POST', url: 'Patient' }, resource: patient('max') },
    { request: { method: 'POST', url: 'Patient', ifNoneExist: `identifier=${identifier('rex')[0].value}` }, resource: patient('rex') },
    { request: { method: 'GET', url: 'Patient/nobody' } },
    { request: { method: 'PUT', url: `Patient/${run}` }, resource: patient('put', { id: run }) },
  ] } });
  assert.equal(answer.type, 'batch-response');
  assert.deepEqual(answer.entry.map((entry) => entry.response.status.slice(0, 3)), ['200', '201', '200', '404', '201']);
  assert.deepEqual(answer.entry[0].resource, rex);
});

await step('transaction of one write', async () => {
  const answer = await client.transaction({ body: { resourceType: 'Bundle', type: 'transaction', entry: [
    { fullUrl: 'urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a', request: { method: 'POST', url: 'Patient', ifNoneExist: `identifier=${identifier('rex')[0].value}` }, resource: patient('rex') },
    { request: { method: 'POST', url: 'RelatedPerson' }, resource: { resourceType: 'RelatedPerson', patient: { reference: 'urn:uuid:61ebe359-bfdc-4613-8bf2-c5e300945f0a' } } },
  ] } });
  assert.equal(answer.entry[1].resource.patient.reference, `Patient/${rex.id}`);
});

// Storage that writes several records as one says so.
if (process.env.FHIR_ATOMIC) {
  await step('transaction of several writes', async () => {
    const entries = (owner) => [
      { fullUrl: 'urn:uuid:0d4c6f4a-6b0b-4c0e-9a55-6a1d5b1f7c11', request: { method: 'POST', url: 'Organization' }, resource: { resourceType: 'Organization', name: `${run}-atomic` } },
      { request: { method: 'PUT', url: `Patient/${run}-atomic` }, resource: patient('atomic', { id: `${run}-atomic`, managingOrganization: { reference: owner } }) },
    ];
    const bundle = (owner, more = []) => ({ body: { resourceType: 'Bundle', type: 'transaction', entry: [...entries(owner), ...more] } });
    const stale = { request: { method: 'PUT', url: `Patient/${run}`, ifMatch: 'W/"999"' }, resource: patient('put', { id: run }) };
    await refused(412, client.transaction(bundle('urn:uuid:0d4c6f4a-6b0b-4c0e-9a55-6a1d5b1f7c11', [stale])));
    await refused(404, client.read({ resourceType: 'Patient', id: `${run}-atomic` }));
    const answer = await client.transaction(bundle('urn:uuid:0d4c6f4a-6b0b-4c0e-9a55-6a1d5b1f7c11'));
    assert.deepEqual(answer.entry.map((entry) => entry.response.status.slice(0, 3)), ['201', '201']);
    const written = await client.read({ resourceType: 'Patient', id: `${run}-atomic` });
    assert.equal(written.managingOrganization.reference, `Organization/${answer.entry[0].resource.id}`);
  });
}

await step('$validate', async () => {
  const judge = (resource) => client.operation({ name: 'validate', resourceType: 'Patient', input: resource });
  const errors = (outcome) => outcome.issue.filter((issue) => issue.severity === 'error');
  assert.equal(errors(await judge(patient('x'))).length, 0);
  assert.notEqual(errors(await judge({ resourceType: 'Patient', active: 'yes' })).length, 0);
});

await step('delete', async () => {
  await client.delete({ resourceType: 'Patient', id: rex.id });
  await refused(410, client.read({ resourceType: 'Patient', id: rex.id }));
  await client.delete({ resourceType: 'Patient', id: rex.id });
  const history = await client.history({ resourceType: 'Patient', id: rex.id });
  assert.equal(history.entry[0].request.method, 'DELETE');
});
