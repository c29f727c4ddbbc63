// The landing page, the API reference and the pages of errors of a running site, in headless Chromium.

import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { base, closeRest, firstPage, open, serving, site, start, stop, tokens } from './harness.mjs';

before(async () => {
  await start();
  await serving();
});
after(stop);
afterEach(closeRest);

const pages = /^\/($|errors(\/|$)|site\/[^/]+($|\/docs(\/|$)))/;

test('the landing page leads to the reference, the console and the errors', async () => {
  const window = await open();
  await window.page.goto(`${base}/site/${site}`);
  await window.accessible('landing page');
  for (const name of ['API reference', 'Console', 'Codes of errors']) await window.page.getByRole('link', { name }).waitFor();
  await window.page.getByRole('link', { name: 'Codes of errors' }).click();
  await window.page.waitForURL(`${base}/errors`);
  await window.accessible('codes of errors');
  await window.page.getByRole('link', { name: 'slot_booked' }).click();
  await window.page.waitForURL(`${base}/errors/slot_booked`);
  await window.accessible('page of a code');
  window.check({ pages });
  await window.close();
});

/** small are the first pages whose size is limited: their path, what a person waits for, and the name of a picture. */
const small = [
  ['', (page) => page.getByRole('link', { name: 'API reference' })],
  ['/docs', (page) => page.getByLabel('Find an operation'), 'reference'],
  ['/docs/operations/updatePatient_fhir', (page) => page.getByRole('button', { name: 'Send' }), 'reference-operation'],
  ['/docs/schemas/Extension', (page) => page.getByRole('link', { name: 'HumanName', exact: true })],
];

for (const [path, ready, picture] of small) {
  test(`the first page of ${path || 'a site'} is small`, async () => {
    const window = await firstPage(`${base}/site/${site}${path}`, (page) => ready(page).waitFor());
    await window.accessible(path);
    if (picture) await window.picture(picture);
    window.check({ pages });
    await window.close();
  });
}

test('no page is wider than a narrow window', async () => {
  const window = await open();
  for (const path of [`/site/${site}`, `/site/${site}/docs`, `/site/${site}/docs/operations/updatePatient_fhir`, `/site/${site}/docs/schemas/Extension`, '/errors', '/errors/slot_booked']) {
    await window.page.goto(base + path);
    await window.fits(path);
    await window.page.locator('details').evaluateAll((all) => all.forEach((details) => { details.open = true; }));
    await window.fits(`${path} with its details`);
  }
  window.check({ pages });
  await window.close();
});

test('the API reference finds an operation by the keyboard, and sends requests with a token that it does not store', async () => {
  const window = await open();
  const { page } = window;
  /** sends presses Enter or a button, and returns the request whose response is shown. */
  const sends = async (act, status) => {
    const [request] = await Promise.all([page.waitForRequest((each) => !pages.test(new URL(each.url()).pathname)), act()]);
    await page.getByText(new RegExp(`^${status} .*\\d+ ms$`)).waitFor();
    return request;
  };
  await page.goto(`${base}/site/${site}/docs`);
  await page.getByText(/^\d{3} operations, \d{3} schemas$/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('site-usage get');
  await page.getByText('1 operation, 0 schemas', { exact: true }).waitFor();
  for (let i = 0; i < 2; i++) await page.keyboard.press('Tab'); // the group, and its one operation
  await page.keyboard.press('Enter');
  await page.waitForURL(`${base}/site/${site}/docs/operations/siteUsage`);
  await sends(() => page.getByRole('button', { name: 'Send' }).click(), 401);
  await page.getByLabel('Token', { exact: true }).fill(tokens.editor);
  await sends(() => page.getByRole('button', { name: 'Send' }).click(), 200);
  await page.getByLabel('Body of the response').getByText('"siteId"').waitFor();
  await window.accessible('an operation with a response');

  await page.goBack();
  assert.equal(await page.getByLabel('Find an operation').inputValue(), 'site-usage get'); // the list is as it was
  await page.getByLabel('Find an operation').fill('patient search fhir');
  await page.getByRole('link', { name: 'GET /fhir/Patient Search', exact: true }).click();
  await page.getByLabel('name', { exact: true }).fill('Rex & Co');
  await page.getByLabel('_include', { exact: true }).fill('Patient:link\nPatient:organization');
  await page.getByRole('combobox', { name: 'Accept', exact: true }).selectOption('application/json');
  const search = await sends(() => page.getByLabel('name', { exact: true }).press('Enter'), 200); // the token is there yet
  const { searchParams } = new URL(search.url());
  assert.deepEqual([searchParams.get('name'), searchParams.getAll('_include'), search.headers().accept], ['Rex & Co', ['Patient:link', 'Patient:organization'], 'application/json']);

  await page.getByText('All operations of Patient').click();
  await page.getByRole('link', { name: 'PUT /fhir/Patient/{id}' }).click();
  await page.getByLabel('id', { exact: true }).fill('rex');
  await page.getByLabel('If-Match', { exact: true }).fill('W/"nonsense"');
  const update = await sends(() => page.getByRole('button', { name: 'Send' }).click(), 412); // with the example as its body
  assert.deepEqual([update.headers()['content-type'], update.postDataJSON().name], ['application/fhir+json', [{ text: 'Rex' }]]);
  const command = await page.getByLabel('Request for a shell').innerText();
  assert.ok(command.includes('Bearer $TOKEN') && !command.includes(tokens.editor), command);

  await page.getByText('Fields', { exact: true }).first().click();
  await page.getByRole('link', { name: 'HumanName' }).click();
  await page.getByRole('heading', { name: 'Schema HumanName' }).waitFor();
  await window.accessible('a schema');
  await window.noStorage();
  window.check({ pages, refused: [401, 412] });
  await window.close();
});
