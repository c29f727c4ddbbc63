// What people do with the console, in headless Chromium against a running site.

import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { after, afterEach, before, test } from 'node:test';
import { prepare, resource, slot } from './clinic.mjs';
import { api, base, closeRest, eventually, firstPage, focused, hold, home, keeping, open, serving, settings, signIn, site, start, stop, tokens, usedOperations } from './harness.mjs';

before(async () => {
  await start();
  await serving();
  await prepare();
});
after(stop);
afterEach(closeRest);

test('the first page is small', async () => {
  const window = await firstPage(home, (page) => page.getByRole('button', { name: 'Sign in with clinic' }).waitFor());
  await window.accessible('sign-in');
  await window.picture('console-sign-in');
  window.check();
  await window.close();
});

test('the start leads to a site', async () => {
  const window = await open();
  await window.page.goto(`${base}/console`);
  await window.accessible('start');
  await window.page.getByLabel('Site').fill(site);
  await window.page.getByRole('button', { name: 'Continue' }).click();
  await window.page.waitForURL(home);
  await window.page.getByLabel('Token').waitFor();
  window.check();
  await window.close();
});

test('signing in with a token shows the site', async () => {
  const window = await open();
  await signIn(window, tokens.editor);
  await window.page.getByRole('link', { name: '31 Patient', exact: true }).waitFor();
  await window.page.getByText('1 webhook,').waitFor();
  await window.accessible('home');
  await window.noStorage();
  window.check();
  await window.page.reload();
  await window.page.getByLabel('Token').waitFor(); // the token is gone
  await window.close();
});

test('the home shows the conditions of the site, and requests as they happen', async () => {
  const window = await open();
  await window.page.clock.install();
  await signIn(window, tokens.editor);
  const health = window.page.getByRole('region', { name: 'Health' });
  await health.getByText('The site works.').waitFor();
  for (const type of ['Ready', 'IssuersReady']) await health.locator(`[data-condition="${type}"].good`).waitFor();
  const storage = window.page.getByRole('region', { name: 'Storage' });
  await storage.getByText(/^Records: \d+ of 2,000 \([\d.]+%\)$/).waitFor();
  await storage.getByText(/^Data: [\d.]+ KiB of 64 MiB/).waitFor();
  assert.equal(await storage.getByRole('meter').count(), 2);
  const requests = window.page.getByRole('region', { name: 'Requests' });
  await requests.getByText(/half within \d+ ms\s+95 % within \d+ ms/).waitFor();
  await requests.getByText(`Requests to the API server ${hostname()} only`).waitFor();
  await window.page.getByRole('region', { name: 'Deliveries' }).getByText(/By the minute in which events were accepted:\s+[12] delivered/).waitFor();
  const shown = async () => Number(/([\d,]+) requests in the last hour/.exec(await requests.innerText())[1].replace(',', ''));
  const own = window.page.getByRole('region', { name: 'Answers to this browser' });
  const answered = async () => Number(/of (\d+) requests/.exec(await own.innerText())[1]);
  const before = [await shown(), await answered()];
  for (let i = 0; i < 3; i++) await api('GET', 'fhir/Patient/rex');
  await window.page.clock.fastForward(11_000);
  await eventually(async () => (await shown()) >= before[0] + 5 && (await answered()) >= before[1] + 2, 'requests of others are in the graph, and those of this browser');
  await window.accessible('home');
  await window.picture('console-home');
  window.check();
  await window.close();
});

test('signing in at the issuer uses a code and PKCE, and renews the token', async () => {
  const window = await open();
  await window.page.clock.install();
  await window.page.goto(`${home}/search/Patient#name=rex`);
  await window.page.getByRole('button', { name: 'Sign in with clinic' }).click();
  await window.page.getByRole('link', { name: 'Rex Moore' }).waitFor(); // the page that was asked for
  assert.equal(window.page.url(), `${home}/search/Patient#name=rex`);
  const authorize = new URL(window.requests.find(({ url }) => url.startsWith(`${settings.issuer}/authorize?`)).url).searchParams;
  assert.equal(authorize.get('code_challenge_method'), 'S256');
  await window.noStorage();
  const grants = () => window.requests.filter(({ method, url }) => method === 'POST' && url.startsWith(settings.issuer)).length;
  assert.equal(grants(), 1);
  const renewal = window.page.waitForResponse((response) => response.url().startsWith(settings.issuer) && response.request().method() === 'POST');
  await window.page.clock.fastForward('59:30');
  await renewal;
  await window.page.getByRole('link', { name: 'Home' }).click();
  await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
  await window.page.getByRole('region', { name: 'Webhooks' }).getByText('1 webhook,').waitFor();
  await window.page.getByText('are shown to people with the right to get the Site').waitFor(); // alice has none
  assert.equal(await window.page.getByRole('region', { name: 'Health' }).count(), 0);
  assert.equal(await window.page.getByText('The token ends within a minute').count(), 0);
  window.check({ origins: [settings.issuer] });
  await window.close();
});

test('searching completes parameters and shows fitting columns', async () => {
  const window = await open();
  await signIn(window, tokens.editor);
  const { page } = window;
  await page.keyboard.press('/');
  await page.waitForURL(`${home}/search`);
  await page.waitForFunction(() => document.activeElement?.matches('[data-search]'));
  const names = await page.locator('#parameters option').evaluateAll((options) => options.map((o) => o.value));
  for (const name of ['name', 'species', 'birthdate', '_lastUpdated']) assert.ok(names.includes(name), `${name} is completed`);
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByText('20 records on this page').first().waitFor();
  for (const column of ['Name', 'Species', 'Breed', 'Gender', 'Born', 'Owner', 'Identifier']) await page.getByRole('columnheader', { name: column, exact: true }).waitFor();
  await window.accessible('search');
  await window.picture('console-search');
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('row', { name: /Rex Moore Dog Golden Retriever male, neutered 2020-05-14 Mo Moore 985112003456789/ }).waitFor();
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.getByText('20 records on this page').first().waitFor();
  await page.getByLabel('Parameter').fill('name');
  await page.getByLabel('Value').fill('nothing-has-this-name');
  await page.getByLabel('Value').press('Enter');
  await page.getByText('No record matches').waitFor();
  await page.getByLabel('Parameter').fill('nmae');
  await page.getByLabel('Value').press('Enter');
  await page.getByRole('alert').getByText('nmae').first().waitFor();
  window.check({ refused: [400] });
  await window.close();
});

test('what is found can be copied', async () => {
  const window = await open({ permissions: ['clipboard-read', 'clipboard-write'] });
  await signIn(window, tokens.editor, '/search/Patient#name=rex');
  const copied = async (name) => {
    await window.page.getByRole('button', { name }).click();
    await window.page.getByText('Copied.').waitFor();
    return window.page.evaluate(() => navigator.clipboard.readText());
  };
  assert.equal(await copied('Copy URL'), `${base}/site/${site}/fhir/Patient?name=rex&_revinclude=RelatedPerson%3Apatient`);
  const curl = await copied('Copy curl');
  assert.ok(curl.includes('Bearer $TOKEN') && !curl.includes(tokens.editor), curl);
  assert.match(await copied('Copy CSV'), /^id,Name,Species,.*\r\nrex,Rex Moore,Dog,/);
  window.check();
  await window.close();
});

test('a record is readable, and linked both ways', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/record/Patient/rex');
  const { page } = window;
  const card = page.getByRole('article', { name: 'Summary' });
  for (const text of ['Rex Moore', 'Dog', 'Golden Retriever', 'male, neutered', '985112003456789']) await card.getByText(text).first().waitFor();
  await card.getByText(/2020-05-14 \(\d+ years\)/).waitFor();
  await card.getByRole('link', { name: 'Mo Moore' }).waitFor();
  await page.getByRole('region', { name: 'Refers to' }).getByRole('link', { name: 'Dr. Ann Lee' }).waitFor();
  await page.getByRole('region', { name: 'Referred to by' }).getByRole('link', { name: 'Mo Moore' }).waitFor();
  await card.getByText('Narrative').click();
  await card.getByText('a dog').waitFor();
  assert.equal(await card.locator('.narrative img, .narrative [style]').count(), 0);
  await window.accessible('record');
  await window.picture('console-record');
  await page.getByRole('region', { name: 'Refers to' }).getByRole('link', { name: 'Dr. Ann Lee' }).click();
  await page.getByRole('heading', { name: 'Dr. Ann Lee', level: 1 }).waitFor();
  await page.getByRole('region', { name: 'Referred to by' }).getByRole('link', { name: 'Rex Moore' }).waitFor();
  window.check();
  await window.close();
});

test('an edit is validated, saved with its version, and refused when it is late', async () => {
  await api('PUT', 'fhir/Person/pat', { resourceType: 'Person', id: 'pat', name: [{ family: 'Pat' }] });
  const window = await open();
  await signIn(window, tokens.editor, '/record/Person/pat');
  const { page } = window;
  await page.getByRole('button', { name: 'Edit' }).click();
  const text = page.getByLabel('JSON of the next version');
  await text.fill((await text.inputValue()).replace('"resourceType": "Person"', '"resourceType": "Person", "gender": "robot"'));
  await page.getByRole('button', { name: 'Validate' }).click();
  await page.getByText('Person.gender').waitFor();
  await text.fill((await text.inputValue()).replace('robot', 'female'));
  await page.getByRole('button', { name: 'Validate' }).click();
  await page.getByText('The text is valid.').waitFor();
  await window.accessible('editor');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Person, version 2').waitFor();
  await page.getByRole('button', { name: 'Edit' }).click();
  await text.fill((await text.inputValue()).replace('female', 'male'));
  await api('PUT', 'fhir/Person/pat', { resourceType: 'Person', id: 'pat', name: [{ family: 'Other' }] });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('The record was changed since you opened it').waitFor();
  window.check({ refused: [412] });
  await window.close();
});

test('a save that is answered late does not show its record at the address of another', async () => {
  await api('PUT', 'fhir/Person/next', { resourceType: 'Person', id: 'next', name: [{ family: 'Next' }] });
  await api('PUT', 'fhir/Person/late', { resourceType: 'Person', id: 'late', name: [{ family: 'Late' }], link: [{ target: { reference: 'Person/next' } }] });
  const window = await open();
  await signIn(window, tokens.editor, '/record/Person/late');
  const { page } = window;
  await page.getByRole('button', { name: 'Edit' }).click();
  const text = page.getByLabel('JSON of the next version');
  await text.fill((await text.inputValue()).replace('"Late"', '"Later"'));
  const answer = await hold(page, '**/fhir/Person/late', 'PUT');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('region', { name: 'Refers to' }).getByRole('link', { name: 'Next' }).click();
  await page.getByRole('heading', { name: 'Next', level: 1 }).waitFor();
  assert.equal(await text.count(), 0, 'editors of another record');
  answer();
  await page.getByText('Saved as version 2.').waitFor();
  await page.waitForLoadState('networkidle');
  await page.getByRole('heading', { name: 'Next', level: 1 }).waitFor();
  await page.getByLabel('JSON of the record').getByText('"Next"').waitFor();
  window.check();
  await window.close();
});

test('an editor loses no text', async () => {
  await api('PUT', 'fhir/Person/typed', { resourceType: 'Person', id: 'typed', name: [{ family: 'Typed' }] });
  const window = await open();
  await signIn(window, tokens.editor, '/record/Person/typed');
  const { page } = window;
  const [edit, save] = [page.getByRole('button', { name: 'Edit' }), page.getByRole('button', { name: 'Save' })];
  const text = page.getByLabel('JSON of the next version');
  const dialogs = [];
  page.on('dialog', (dialog) => {
    dialogs.push(dialog.type());
    return dialog.dismiss();
  });
  const reload = () => page.evaluate(() => void setTimeout(() => location.reload()));
  await edit.click();
  const sent = (await text.inputValue()).replace('"Typed"', '"Saved"');
  await text.fill(sent);
  await reload();
  await eventually(() => dialogs.length === 1, 'the browser asks before it leaves');
  const [answer, read] = [await hold(page, '**/fhir/Person/typed', 'PUT'), await hold(page, '**/fhir/Person/typed?*', 'GET')];
  for (let i = 0; i < 2; i++) await save.press('Enter');
  await text.press('x');
  assert.equal(await text.inputValue(), sent, 'the text while it is saved');
  answer();
  await page.getByText('Saved as version 2.').waitFor();
  await text.waitFor({ state: 'detached' });
  await edit.press('Enter'); // the new version is not there yet
  assert.equal(await edit.getAttribute('aria-expanded'), 'false');
  read();
  await edit.click();
  assert.match(await text.inputValue(), /"versionId": "2"/);
  assert.equal(window.requests.filter(({ method }) => method === 'PUT').length, 1);
  await reload(); // nothing was changed
  await page.getByLabel('Token').waitFor();
  assert.deepEqual(dialogs, ['beforeunload']);
  window.check();
  await window.close();
});

test('the history shows differences by element, and restores', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/history/Patient/rex');
  const { page } = window;
  await page.getByRole('row', { name: /changed name\[0\]\.family Miller Moore/ }).waitFor();
  await page.getByRole('row', { name: /changed birthDate 2020-05-04 2020-05-14/ }).waitFor();
  assert.equal(await page.locator('.changes tbody tr').count(), 2);
  await window.accessible('history');
  await window.picture('console-history');
  await page.goto('about:blank');

  await api('PUT', 'fhir/Person/lost', { resourceType: 'Person', id: 'lost', name: [{ family: 'Lost' }] });
  await signIn(window, tokens.editor, '/record/Person/lost');
  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('button', { name: 'Delete the record' }).click();
  await page.waitForURL(`${home}/history/Person/lost`);
  await page.getByText('Version 2 deleted').waitFor();
  await page.getByRole('button', { name: 'Restore version 1' }).click();
  await page.getByRole('button', { name: 'Restore the version' }).click();
  await page.getByText('Version 3', { exact: true }).waitFor();
  assert.equal((await api('GET', 'fhir/Person/lost')).name[0].family, 'Lost');
  window.check();
  await window.close();
});

test('two browsers cannot book the same time', async () => {
  const [ann, ben] = [await open(), await open()];
  for (const window of [ann, ben]) await signIn(window, tokens.editor, '/week');
  const choose = (window, id) => window.page.locator(`[data-slot="${id}"]`).click();
  await choose(ann, slot.first);
  await ann.page.getByText('in America/New_York').waitFor();
  for (const name of ['Dr. Ben Ortiz', 'Room 1']) await ann.page.getByRole('dialog').getByText(name, { exact: true }).waitFor();
  await choose(ben, slot.overlapping);
  await ann.page.getByRole('button', { name: 'Hold' }).click();
  await ann.page.getByText('The slot is held').waitFor();
  await ben.page.getByRole('button', { name: 'Book', exact: true }).click();
  await ben.page.getByText('In conflict with the slot').waitFor();
  await ben.accessible('a conflict');
  await ben.picture('console-conflict');
  await choose(ann, slot.first);
  await ann.page.getByText('by you').waitFor();
  await ann.page.getByRole('button', { name: 'Book', exact: true }).click();
  await ann.page.locator(`[data-slot="${slot.first}"]`).getByText('Booked').waitFor();
  await ann.accessible('week');
  await ann.picture('console-week');
  await choose(ann, slot.first);
  await ann.page.getByRole('button', { name: 'Release' }).click();
  await ann.page.getByText('The slot is free.').waitFor();
  await ben.page.getByRole('button', { name: 'Book', exact: true }).click();
  await ben.page.getByText('The slot is booked.').waitFor();
  assert.equal((await api('GET', `ahds/v1/availability-slot/${slot.overlapping}`)).isBooked, true);
  ann.check();
  ben.check({ refused: [409] });
  await ann.close();
  await ben.close();
});

test('a series of slots is created once', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/week#week=2031-03-03');
  const { page } = window;
  await page.getByText('No slot this week.').waitFor();
  for (const created of [15, 0]) {
    await page.getByRole('button', { name: 'Create a series' }).click();
    await page.getByLabel('Minutes of a slot').fill('60');
    await page.getByLabel('Resource (a UUID)').fill(resource);
    await page.getByLabel('Location (a UUID)').fill(resource);
    await page.getByRole('button', { name: 'Create the slots' }).click();
    await page.getByText(`${created} slots were created`).waitFor();
  }
  await page.getByRole('region', { name: 'Mon 3 Mar' }).or(page.getByRole('region', { name: 'Mon, 3 Mar' })).getByText('09:00–10:00').waitFor();
  window.check();
  await window.close();
});

test('a delivery is seen and sent again', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/deliveries');
  const { page } = window;
  await page.getByRole('link', { name: 'user.created' }).click();
  const items = page.locator('[data-delivery]');
  await items.first().waitFor();
  const before = await items.count();
  await page.getByRole('button', { name: 'Send a test' }).click();
  await page.getByText('A test event is on its way.').waitFor();
  const delivered = (id, attempts) => eventually(async () => {
    const found = await api('GET', `ahds/v1/webhook/${settings.webhook}/delivery/${id}`);
    return found.status === 'delivered' && found.attempts.length >= attempts;
  }, `${id} is delivered ${attempts} times`);
  await page.waitForFunction((n) => document.querySelectorAll('[data-delivery]').length > n, before);
  const id = await items.last().getAttribute('data-delivery');
  await delivered(id, 1);
  await items.last().getByRole('button').click();
  await page.getByText('The delivery is sent again.').waitFor();
  await delivered(id, 2);
  await page.getByRole('button', { name: 'Refresh' }).click();
  await items.last().getByText('2 attempts').waitFor();
  await items.last().locator('summary').click();
  await window.accessible('deliveries');
  await window.picture('console-deliveries');
  window.check();
  await window.close();
});

test('the deliveries of a time are sent again', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/deliveries');
  const { page } = window;
  await page.getByRole('link', { name: 'user.created' }).click();
  await page.locator('[data-delivery]').first().waitFor();
  const settled = (attempts) => eventually(async () => {
    const all = (await api('GET', `ahds/v1/webhook/${settings.webhook}/delivery?pageSize=100`)).data;
    return all.every((d) => d.status === 'delivered' && d.attempts.length >= attempts(d.deliveryId)) && new Map(all.map((d) => [d.deliveryId, d.attempts.length]));
  }, 'all deliveries end');
  const before = await settled(() => 1);
  const replay = async ({ from, delivered }) => {
    await page.getByRole('button', { name: 'Replay …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Replay deliveries' });
    await window.accessible('a replay');
    await dialog.getByLabel(/^Accepted at or after/).fill(from);
    if (delivered) await dialog.getByLabel('Also those that were delivered').check();
    await dialog.getByRole('button', { name: 'Replay', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const yesterday = new Date(Date.now() - 86_400_000).toISOString().slice(0, 16);
  await replay({ from: yesterday });
  await page.getByText('0 deliveries are sent again.', { exact: true }).waitFor(); // none has failed
  await replay({ from: yesterday, delivered: true });
  await page.getByText(`${before.size} ${before.size === 1 ? 'delivery is' : 'deliveries are'} sent again.`, { exact: true }).waitFor();
  await settled((id) => before.get(id) + 1);
  await page.getByRole('button', { name: 'Refresh' }).click();
  await page.locator('[data-delivery]').last().getByText(`${before.get(await page.locator('[data-delivery]').last().getAttribute('data-delivery')) + 1} attempts`).waitFor();
  window.check();
  await window.close();
});

test('many webhooks are on several pages, and all are counted', async () => {
  const hooks = 'ahds/v1/webhook';
  const more = Array.from({ length: 25 }, (_, i) => `0198c4f2-7d1e-7c3a-9b5f-00000000f1${10 + i}`);
  try {
    for (const webhookId of more) await api('POST', hooks, { webhookId, eventType: 'user.created', webhookUrl: 'https://hooks.example.org/', isActive: false }, tokens.auditor);
    await eventually(async () => (await api('GET', `${hooks}?pageSize=1`)).meta.total === 26, 'the list has all webhooks');
    const window = await open();
    await signIn(window, tokens.editor);
    const { page } = window;
    await page.getByRole('region', { name: 'Webhooks' }).getByText('26 webhooks; of the newest 25: 0 failing or disabled, 0 pending deliveries.').waitFor();
    await page.getByRole('link', { name: 'See deliveries' }).click();
    await page.getByText('Page 1 of 2, 26 webhooks').waitFor();
    const rows = page.getByRole('region', { name: 'Webhooks' }).locator('tbody tr');
    assert.equal(await rows.count(), 25);
    await page.getByRole('button', { name: 'Older webhooks' }).press('Enter'); // which is disabled then
    await page.getByText('Page 2 of 2').waitFor();
    await focused(page.getByRole('region', { name: 'Webhooks' }).locator('..'), 'the list');
    await window.fits('pages of webhooks');
    assert.equal(await rows.count(), 1);
    await rows.getByRole('link', { name: 'user.created' }).click();
    await page.locator('[data-delivery]').first().waitFor();
    await page.getByText('Page 2 of 2').waitFor();
    await page.getByLabel('Status').selectOption('failed');
    await page.getByText('0 deliveries', { exact: true }).waitFor();
    assert.equal(page.url(), `${home}/deliveries/${settings.webhook}#webhooks=1&status=failed`);
    await page.goto('about:blank');
    await signIn(window, tokens.editor, `/deliveries/${settings.webhook}`); // which is not among the newest
    await page.locator('[data-delivery]').first().waitFor();
    await page.getByText('Page 1 of 2').waitFor();
    await window.accessible('many webhooks');
    window.check();
    await window.close();
  } finally {
    for (const id of more) await api('DELETE', `${hooks}/${id}`, undefined, tokens.auditor).catch(() => {}); // it may not have been created
  }
  await eventually(async () => (await api('GET', `${hooks}?pageSize=1`)).meta.total === 1, 'the webhooks are deleted');
});

test('what is pressed twice is sent once', async () => {
  await api('PUT', 'fhir/Person/twice', { resourceType: 'Person', id: 'twice', name: [{ family: 'Once' }] });
  await api('PUT', 'fhir/Person/twice', { resourceType: 'Person', id: 'twice', name: [{ family: 'Twice' }] });
  const window = await open();
  const { page } = window;
  const twice = async (button, method, path, done) => {
    const sent = () => window.requests.filter((each) => each.method === method && each.url.endsWith(path)).length;
    const before = sent();
    const answer = await hold(page, `**${path}`, method);
    for (let i = 0; i < 2; i++) await button.press('Enter');
    assert.equal(await button.getAttribute('aria-disabled'), 'true');
    await focused(button, 'the button that was pressed');
    answer();
    await page.getByText(done).first().waitFor();
    assert.equal(sent() - before, 1, `${method} ${path}`);
    await page.unroute(`**${path}`);
  };
  const webhook = `/ahds/v1/webhook/${settings.webhook}`;
  const dialog = page.getByRole('dialog');

  await signIn(window, tokens.editor, `/deliveries/${settings.webhook}`);
  const item = page.locator('[data-delivery]').last();
  const redeliver = `${webhook}/delivery/${await item.getAttribute('data-delivery')}/redeliver`;
  await twice(page.getByRole('button', { name: 'Send a test' }), 'POST', `${webhook}/test`, 'A test event is on its way.');
  await twice(item.getByRole('button', { name: /^Redeliver/ }), 'POST', redeliver, 'The delivery is sent again.');
  await page.getByRole('button', { name: 'Replay …' }).click();
  await dialog.getByLabel(/^Accepted at or after/).fill('2020-01-01T00:00');
  await twice(dialog.getByRole('button', { name: 'Replay', exact: true }), 'POST', `${webhook}/replay`, /sent again\.$/);
  await dialog.waitFor({ state: 'detached' });
  // The server keeps the content of 200 deliveries, so that this test cannot have one without.
  const detail = 'The content of the delivery is no longer stored.';
  await page.route(`**${redeliver}`, (route) => route.fulfill({ status: 410, contentType: 'application/problem+json', body: JSON.stringify({ code: 'content_gone', detail }) }));
  await item.getByRole('button', { name: /^Redeliver/ }).click();
  await item.getByRole('alert').getByText(detail).waitFor();
  await page.goto('about:blank');

  await signIn(window, tokens.editor, '/history/Person/twice');
  await page.getByRole('button', { name: 'Restore version 1' }).click();
  await twice(page.getByRole('button', { name: 'Restore the version' }), 'PUT', '/fhir/Person/twice', 'Restored as version 3.');
  await page.goto('about:blank');

  await signIn(window, tokens.editor, '/week');
  const id = await page.locator('.slot.free').last().getAttribute('data-slot');
  await page.locator(`[data-slot="${id}"]`).click();
  await twice(dialog.getByRole('button', { name: 'Hold for 5 minutes' }), 'POST', `/availability-slot/${id}/hold`, 'The slot is held');
  await page.locator(`[data-slot="${id}"]`).click();
  await twice(dialog.getByRole('button', { name: 'Release' }), 'POST', `/availability-slot/${id}/release`, 'The slot is free.');
  window.check({ refused: [410] });
  await window.close();
});

test('the pages of a list keep what is entered', async () => {
  const window = await open();
  await signIn(window, tokens.auditor, '/search/Patient#_count=5');
  const { page } = window;
  const address = () => new URL(page.url()).hash.slice(1).replace(/&?_page_token=[^&]+/, '');
  const next = page.getByRole('button', { name: 'Next' });
  const previous = page.getByRole('button', { name: 'Previous' });
  await page.getByText('5 records on this page').first().waitFor();
  await page.getByLabel('Parameter').fill('name');
  await page.getByLabel('Value').fill('rex');
  await next.click();
  await page.waitForFunction(() => !document.querySelectorAll('.pager button')[0]?.disabled); // the second page
  await previous.click();
  await page.waitForFunction(() => document.querySelectorAll('.pager button')[0]?.disabled);
  assert.deepEqual([await page.getByLabel('Parameter').inputValue(), await page.getByLabel('Value').inputValue()], ['name', 'rex']);
  await page.getByLabel('Value').press('Enter');
  await page.getByText('1 record on this page').first().waitFor();
  assert.equal(address(), 'name=rex&_count=5');
  await page.goto('about:blank');

  await signIn(window, tokens.auditor, '/audit#_count=5');
  await page.getByText('5 entries on this page').waitFor();
  await page.getByLabel('Record').fill('Patient/rex');
  await next.click();
  await page.waitForURL(/_page_token/);
  await page.getByText('5 entries on this page').waitFor();
  assert.equal(await page.getByLabel('Record').inputValue(), 'Patient/rex');
  await page.getByRole('button', { name: 'Filter' }).click();
  await page.waitForURL(/entity/);
  assert.equal(address(), 'entity=Patient%2Frex&_count=5');
  window.check();
  await window.close();
});

test('the audit log is for auditors', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/audit');
  await window.page.getByText('You have no right to the audit log').waitFor();
  window.check({ refused: [403] });
  await window.close();

  const auditor = await open();
  await signIn(auditor, tokens.auditor, '/audit#entity=Patient/rex&action=U');
  await auditor.page.getByRole('row', { name: /system:serviceaccount:oak:editor update success/ }).first().waitFor();
  await auditor.accessible('audit');
  await auditor.picture('console-audit');
  const [download] = await Promise.all([auditor.page.waitForEvent('download'), auditor.page.getByRole('button', { name: 'Export all matches' }).click()]);
  assert.equal(download.suggestedFilename(), 'audit-oak.ndjson');
  auditor.check();
  await auditor.close();
});

test('a hidden record stays hidden', async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/search/Patient#name=secret');
  await window.page.getByText('No record matches').waitFor();
  await window.page.goto('about:blank');
  await signIn(window, tokens.editor, '/record/Patient/secret');
  await window.page.getByRole('heading', { name: 'Not found' }).waitFor();
  assert.equal(await window.page.getByText(/Secret/).count(), 0); // its name; the id is in the message
  window.check({ refused: [404] });
  await window.close();

  const auditor = await open();
  await signIn(auditor, tokens.auditor, '/record/Patient/secret');
  await auditor.page.getByRole('heading', { name: 'Secret', level: 1 }).waitFor();
  await auditor.close();
});

test('a hidden site is like one that does not exist, until a token with a right is there', async () => {
  const page = async (id) => {
    const response = await fetch(`${base}/site/${id}/console`, { headers: { Accept: 'text/html' } });
    const headers = Object.fromEntries([...response.headers].filter(([name]) => name !== 'date'));
    return { status: response.status, headers, body: (await response.text()).replaceAll(id, 'ID') };
  };
  const unknown = 'yew';
  assert.deepEqual(await page(settings.hidden), await page(unknown));
  const window = await open();
  const enter = async (id, token) => {
    await window.page.goto(`${base}/site/${id}/console`);
    await window.page.getByText(`No site “${id}” answers without a token`).waitFor();
    await window.page.getByLabel('Token').fill(token);
    await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  };
  const text = async (id) => {
    await enter(id, tokens.stranger);
    await window.page.getByRole('alert').waitFor();
    return (await window.page.locator('main').innerText()).replaceAll(id, 'ID');
  };
  assert.equal(await text(settings.hidden), await text(unknown));
  await enter(settings.hidden, tokens.hidden);
  await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
  window.check({ refused: [404, 401] });
  await window.close();
});

test('an expired token is refused, and one that ends asks to sign in again', async () => {
  const window = await open();
  await window.page.clock.install();
  await window.page.goto(home);
  await window.page.getByLabel('Token').fill(tokens.expired);
  await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await window.page.getByRole('alert').getByText('The site does not accept this token').waitFor();
  await window.page.getByLabel('Token').fill(tokens.editor);
  await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
  const { exp } = JSON.parse(Buffer.from(tokens.editor.split('.')[1], 'base64url'));
  await window.page.clock.fastForward(exp * 1000 - Date.now() - 40_000);
  await window.page.getByText('The token ends within a minute').waitFor();
  await window.page.clock.fastForward(60_000);
  const dialog = window.page.getByRole('dialog', { name: 'The session has ended' });
  await dialog.waitFor();
  await window.accessible('an expired session');
  await window.page.clock.setSystemTime(new Date());
  await dialog.getByLabel('Token').fill(tokens.auditor);
  await dialog.getByRole('button', { name: 'Sign in', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
  window.check({ refused: [401] });
  await window.close();
});

test('after signing out, the Back button shows nothing', () => keeping(async () => {
  const window = await open();
  await signIn(window, tokens.editor, '/search/Patient#name=rex');
  const { page } = window;
  await page.getByRole('link', { name: 'Rex Moore' }).click();
  await page.getByRole('heading', { name: 'Rex Moore', level: 1 }).waitFor();
  await page.evaluate(() => {
    sessionStorage.setItem('paddock-console-sign-in', 'a sign-in that was not completed');
    globalThis.signedIn = true;
  });
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.waitForURL(home);
  await page.getByLabel('Token').waitFor();
  await window.noStorage();
  const signedOut = window.requests.length;
  for (const url of [`${home}/record/Patient/rex`, `${home}/search/Patient#name=rex`]) {
    await page.evaluate(() => history.back());
    await page.waitForURL(url);
    await page.waitForFunction(() => globalThis.signedIn === undefined);
    await page.getByLabel('Token').waitFor();
    // The browser had kept the page.
    assert.equal(await page.evaluate(() => performance.getEntriesByType('navigation')[0].type), 'reload');
    assert.equal(await page.getByRole('navigation', { name: 'Pages', exact: true }).count(), 0);
    assert.equal(await page.getByText('Rex').count(), 0);
  }
  assert.deepEqual(window.requests.slice(signedOut).filter(({ headers }) => headers.authorization), [], 'requests with a token');
  window.check();
  await window.close();
}));

test('addresses that lead nowhere are said', async () => {
  const window = await open();
  for (const path of ['/record/Patient', '/history/Patient', '/search/Nothing', '/none']) {
    await signIn(window, tokens.editor, path);
    await window.page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await window.page.goto('about:blank');
  }
  await signIn(window, tokens.editor, '/week#week=2026-99-99');
  await window.page.getByRole('heading', { name: /^Week of/, level: 1 }).waitFor();
  await window.page.locator('[data-slot]').first().waitFor(); // of this week
  await window.page.goto('about:blank');
  await signIn(window, tokens.editor, `/deliveries/${settings.webhook}#webhooks=99&page=99`);
  const past = window.page.getByText('This page is past the end.');
  await past.nth(1).waitFor();
  await window.page.getByRole('button', { name: 'Newer webhooks' }).click();
  await window.page.getByRole('link', { name: 'user.created' }).waitFor();
  await window.page.getByRole('button', { name: 'Previous' }).click();
  await window.page.locator('[data-delivery]').first().waitFor();
  assert.equal(await past.count(), 0);
  window.check();
  await window.close();
});

test('a slow server and a lost connection are said', async () => {
  const window = await open();
  await signIn(window, tokens.editor);
  const { page } = window;
  await page.getByRole('heading', { name: 'Records' }).waitFor();
  const answer = await hold(page, '**/fhir/Patient?*', 'GET');
  await page.clock.install();
  await page.getByRole('link', { name: /Patient$/ }).click();
  await page.getByText('Loading …').waitFor();
  await page.clock.fastForward(5000);
  await page.getByText('The server takes longer than usual').waitFor();
  answer();
  await page.getByRole('columnheader', { name: 'Species' }).waitFor();
  await page.unroute('**/fhir/Patient?*');
  window.check();
  await page.context().setOffline(true);
  await page.getByText('The browser is offline').waitFor();
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('heading', { name: 'Offline' }).waitFor();
  await page.context().setOffline(false);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('columnheader', { name: 'Species' }).waitFor();
  await window.close();
});

test('keys, zoom and print work', async () => {
  const window = await open({ viewport: { width: 640, height: 400 } }); // as 1280 by 800 at 200 %
  await signIn(window, tokens.editor);
  const { page } = window;
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
  await window.accessible('shortcuts');
  await page.keyboard.press('Escape');
  for (const [key, heading] of [['w', 'Week of'], ['d', 'Deliveries'], ['s', 'Search'], ['h', 'Overview']]) {
    await page.keyboard.press('g');
    await page.keyboard.press(key);
    await page.getByRole('heading', { name: heading, level: 1 }).waitFor();
  }
  await page.goto('about:blank');
  await signIn(window, tokens.editor, '/record/Patient/rex');
  await page.getByRole('article', { name: 'Summary' }).waitFor();
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.getByRole('button', { name: 'Edit' }).isVisible(), false);
  assert.equal(await page.getByRole('article', { name: 'Summary' }).isVisible(), true);
  window.check();
  await window.close();
});

test('no page is wider than a narrow window', async () => {
  const window = await open({ timezoneId: 'America/Argentina/ComodRivadavia' }); // a long option of a list
  const { page } = window;
  const edit = page.getByRole('button', { name: 'Edit' });
  const slots = page.locator('[data-slot]').first();
  for (const [path, ready, opener, opened] of [
    ['', page.getByRole('region', { name: 'Webhooks' }).getByText('pending deliveries')],
    ['/search/Patient', page.getByRole('columnheader', { name: 'Species' })],
    ['/record/Patient/rex', page.getByRole('region', { name: 'Referred to by' }).getByRole('link', { name: 'Mo Moore' }), edit, page.getByLabel('JSON of the next version')],
    ['/history/Patient/rex', page.getByRole('region', { name: 'Changes' })],
    ['/week', slots, slots, page.getByRole('dialog').getByRole('button', { name: 'Book', exact: true })],
    [`/deliveries/${settings.webhook}`, page.locator('[data-delivery]').first()],
    ['/audit', page.getByRole('region', { name: 'Entries of the audit log' })],
  ]) {
    await signIn(window, tokens.auditor, path);
    await ready.waitFor();
    await window.fits(path);
    if (opener) {
      await opener.click();
      await opened.waitFor();
      await window.fits(`${path} with what opens`);
    }
    await page.goto('about:blank');
  }
  window.check();
  await window.close();
});

test('the focus returns to where people can go on by the keyboard', async () => {
  const person = { resourceType: 'Person', id: 'kay', name: [{ family: 'Kay' }] };
  await api('PUT', 'fhir/Person/kay', person);
  await api('PUT', 'fhir/Person/kay', { ...person, gender: 'male' });
  const window = await open();
  const { page } = window;
  const press = (element, key = 'Enter') => element.press(key);
  const button = (name) => page.getByRole('button', { name, exact: true });

  await page.goto(`${home}/week`);
  await page.getByLabel('Token').fill(tokens.editor);
  const answer = await hold(page, '**/fhir/Patient?_summary=count', 'GET');
  await press(button('Sign in'));
  await press(button('Signing in …'));
  await focused(button('Signing in …'), 'the button that was pressed');
  answer();
  await page.getByRole('navigation', { name: 'Pages', exact: true }).waitFor();
  assert.equal(window.requests.filter(({ url }) => url.endsWith('/fhir/Patient?_summary=count')).length, 1);
  const id = await page.locator('.slot.free').last().getAttribute('data-slot');
  const own = page.locator(`[data-slot="${id}"]`);
  for (const [name, done] of [['Hold for 5 minutes', 'The slot is held'], ['Release', 'The slot is free.']]) {
    await press(own);
    await press(button(name));
    await page.getByText(done).waitFor();
    await focused(own, 'the slot');
  }
  await page.goto('about:blank');

  await signIn(window, tokens.editor, `/deliveries/${settings.webhook}`);
  await press(button('Replay …'));
  await page.getByLabel(/^Accepted at or after/).fill(new Date(Date.now() - 86_400_000).toISOString().slice(0, 16));
  await press(page.getByRole('dialog').getByRole('button', { name: 'Replay', exact: true }));
  await page.getByText('0 deliveries are sent again.', { exact: true }).waitFor();
  await focused(button('Replay …'), 'the button that opens the dialog');
  await page.goto('about:blank');

  await signIn(window, tokens.editor, '/record/Person/kay');
  await press(button('Edit'));
  const text = page.getByLabel('JSON of the next version');
  await text.fill((await text.inputValue()).replace('"male"', '"other"'));
  await press(button('Save'));
  await page.getByText('Person, version 3').waitFor();
  await focused(button('Edit'), 'the button that opens the editor');
  await press(page.getByRole('link', { name: 'History' }));
  await press(button('Restore version 1'));
  await press(button('Restore the version'));
  await page.getByText('Version 4', { exact: true }).waitFor();
  await focused(button('Restore version 1'), 'the button of the version');
  await page.goto('about:blank');

  await signIn(window, tokens.editor, '/search');
  const [type, value] = [page.getByLabel('Type'), page.getByLabel('Value')];
  await page.getByLabel('Parameter').fill('_lastUpdated');
  await value.fill('ge2020');
  await press(value);
  await page.getByText('20 records on this page').first().waitFor();
  await focused(value, 'the field');
  await press(button('Next'));
  await page.getByRole('link', { name: 'Rex Moore' }).waitFor();
  await focused(page.getByRole('region', { name: 'Results', exact: true }).locator('..'), 'the results');
  await type.focus();
  await press(type, 'ArrowDown');
  await focused(type, 'the type');
  assert.equal(new URL(page.url()).pathname, `/site/${site}/console/search/Patient`); // the choice waits for the form
  await type.selectOption('Location');
  await press(value);
  await page.getByRole('link', { name: 'Room 1' }).waitFor();
  await focused(value, 'the field');
  window.check();
  await window.close();
});

test('a request that openapi.json does not describe is found', async () => {
  const window = await open();
  await signIn(window, tokens.editor);
  await window.page.getByRole('heading', { name: 'Overview' }).waitFor();
  window.check();
  for (const [method, path] of [['GET', '/fhir/Patient/rex/$undescribed'], ['DELETE', '/fhir/metadata'], ['GET', '/records']]) {
    await window.page.evaluate(([m, url]) => fetch(url, { method: m }), [method, `/site/${site}${path}`]);
    assert.throws(() => window.check({ refused: [401, 404, 405] }), /openapi\.json does not describe/, `${method} ${path}`);
    window.requests.splice(window.requests.findIndex((each) => each.method === method && each.url.endsWith(path)), 1); // the page asks for its figures meanwhile
  }
  window.check({ refused: [401, 404, 405] });
  await window.close();
  const operations = usedOperations();
  console.log(`the windows requested ${operations.length} operations of openapi.json: ${operations.join(', ')}`);
  for (const id of ['siteUsage', 'rights', 'updatePerson_fhir', 'searchPatient_fhir', 'book', 'replay', 'redeliver', 'searchAuditEvents']) {
    assert.ok(operations.includes(id), `${id} was requested`);
  }
});
