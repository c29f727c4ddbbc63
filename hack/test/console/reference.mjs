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

test('the landing page is small', async () => {
  const window = await firstPage(`${base}/site/${site}`, (page) => page.getByRole('link', { name: 'API reference' }).waitFor());
  window.check({ pages });
  await window.close();
});

test('the API reference sends a request with a token', async () => {
  const window = await open();
  const { page } = window;
  await page.goto(`${base}/site/${site}/docs`);
  await page.getByRole('heading', { name: /Paddock/ }).first().waitFor({ timeout: 150_000 }); // it reads a document of more than a megabyte
  await window.accessible('API reference');
  await window.picture('reference');

  await page.getByRole('button', { name: 'Authorize' }).first().click();
  await window.accessible('dialog of the token');
  const dialog = page.locator('.dialog-ux');
  await dialog.getByRole('textbox').first().fill(tokens.editor);
  await dialog.getByRole('button', { name: 'Authorize' }).first().click();
  await dialog.getByRole('button', { name: 'Close' }).first().click();

  await page.getByRole('link', { name: 'AHDS: the site' }).click();
  const operation = page.locator('.opblock', { hasText: '/ahds/v1/site-usage' });
  await operation.getByRole('button').first().click();
  await operation.getByRole('button', { name: 'Try it out' }).click();
  const [answer] = await Promise.all([
    page.waitForResponse((response) => response.url() === `${base}/site/${site}/ahds/v1/site-usage`),
    operation.getByRole('button', { name: 'Execute' }).click(),
  ]);
  assert.equal(answer.status(), 200);
  await operation.getByText('"siteId"').first().waitFor();
  await window.accessible('API reference with a response');
  await window.noStorage();
  window.check({ pages });
  await window.close();
});
