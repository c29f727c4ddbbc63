// Exercises a site's FHIR API with @medplum/core; see harness.mjs.
import assert from 'node:assert/strict';
import { MedplumClient, OperationOutcomeError } from '@medplum/core';
import {
  atomic, base, batchBundle, checkBatch, checkOutcome, checkTransaction, criteria, failure, patient, patientIds, step, tag, token,
  transactionBundle, writeBack,
} from './harness.mjs';

const client = new MedplumClient({ baseUrl: base.replace(/fhir$/, ''), fhirUrlPath: 'fhir', accessToken: token, cacheTime: 0 });

// refused expects a request to fail with an OperationOutcome.
const refused = async (code, request) => {
  const error = await failure(request);
  assert(error instanceof OperationOutcomeError, error);
  checkOutcome(error.outcome, code);
};

await step('capabilities', async () => {
  const statement = await client.get(client.fhirUrl('metadata'));
  assert.equal(statement.resourceType, 'CapabilityStatement');
  assert.equal(statement.implementation.url, base);
});

await writeBack((type, id) => client.readResource(type, id), (resource) => client.updateResource(resource));

let rex;
await step('create', async () => {
  rex = await client.createResource(patient('rex'));
  assert.equal(rex.meta.versionId, '1');
  assert.deepEqual(await client.readReference({ reference: `Patient/${rex.id}` }), rex);
});

await step('conditional create', async () => {
  assert.deepEqual(await client.createResourceIfNoneExist(patient('rex'), criteria('rex')), rex);
});

await step('vread', async () => {
  const first = rex;
  rex = await client.updateResource({ ...rex, active: true });
  assert.equal(rex.meta.versionId, '2');
  assert.deepEqual(await client.readVersion('Patient', rex.id, '1'), first);
});

await step('patch', async () => {
  rex = await client.patchResource('Patient', rex.id, [{ op: 'test', path: '/active', value: true }, { op: 'replace', path: '/active', value: false }]);
  assert.equal(rex.meta.versionId, '3');
  await refused('patch_test_failed', client.patchResource('Patient', rex.id, [{ op: 'test', path: '/active', value: true }]));
});

await step('history', async () => {
  const history = await client.readHistory('Patient', rex.id);
  assert.deepEqual(history.entry.map((entry) => entry.resource.meta.versionId), ['3', '2', '1']);
});

await step('all pages', async () => {
  const found = [];
  for await (const page of client.searchResourcePages('Patient', { _tag: tag, _count: 5 })) {
    assert(page.length <= 5);
    found.push(...page.map((resource) => resource.id));
  }
  assert.deepEqual(found.sort(), patientIds);
});

await step('include', async () => {
  const page = await client.search('RelatedPerson', { _tag: tag, _include: 'RelatedPerson:patient' });
  const included = page.entry.filter((entry) => entry.search.mode === 'include').map((entry) => entry.resource);
  assert(included.length > 0 && included.every((resource) => patientIds.includes(resource.id)));
});

await step('batch', async () => checkBatch(await client.executeBatch(batchBundle(rex.id)), rex.id));

await step('transaction', async () => {
  if (atomic) {
    checkTransaction(await client.executeBatch(transactionBundle()));
  } else {
    await refused('not_supported', client.executeBatch(transactionBundle()));
  }
});

await step('errors', async () => {
  await refused('resource_not_found', client.readResource('Patient', 'nobody'));
  await refused('invalid_query', client.search('Patient', 'colour=brown'));
  await refused('invalid_code', client.updateResource({ ...rex, gender: 'brown' }));
  await refused('version_conflict', client.updateResource({ ...rex, active: true }, { headers: { 'If-Match': 'W/"1"' } }));
});

await step('delete', async () => {
  await client.deleteResource('Patient', rex.id);
  await refused('deleted', client.readResource('Patient', rex.id));
});
