// A browser that watches what the console does: its messages, its requests, and their routes.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

export const settings = JSON.parse(process.env.CONSOLE_TEST);
export const { base, site, tokens } = settings;
export const home = `${base}/site/${site}/console`;

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** documented are the operations of the site's OpenAPI document, and used the ids of those that a window requested. */
let documented;
const used = new Set();

/** readDocument reads the operations of the OpenAPI document. Parameters of paths have the characters of ids. */
async function readDocument() {
  const response = await fetch(`${base}/site/${site}/openapi.json`);
  assert.equal(response.status, 200, 'the OpenAPI document');
  const { paths } = await response.json();
  documented = Object.entries(paths).flatMap(([path, methods]) => {
    const below = path.replace(/[.$]/g, '\\$&').replace(/\{[^/}]+\}/g, '[A-Za-z0-9.-]+');
    return Object.entries(methods).map(([method, { operationId }]) => ({ method: method.toUpperCase(), operationId, path: new RegExp(`^${below}$`) }));
  });
}

/** usedOperations returns the ids of the operations that windows requested, sorted. */
export const usedOperations = () => [...used].sort();

let browser;
const opened = [];

const launch = (options) => chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'], ...options });

export async function start() {
  await readDocument();
  browser = await launch();
}

export const stop = () => browser?.close();

/** Window is a browser context with one page. check asserts what must hold of all that it did. */
export class Window {
  constructor(page) {
    this.page = page;
    this.messages = [];
    this.requests = [];
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.messages.push({ text: message.text(), url: message.location().url });
    });
    page.on('pageerror', (error) => this.messages.push({ text: String(error), url: page.url() }));
    page.on('request', (request) => this.requests.push({ method: request.method(), url: request.url(), headers: request.headers() }));
  }

  /** check expects no message but the browser's own of refused requests, no other origin, and no request that openapi.json does not describe, except those of pages. */
  check({ refused = [], origins = [], pages = /^(\/site\/[^/]+)?\/console(\/|$)/ } = {}) {
    const unexpected = this.messages.filter(({ text }) => !refused.some((status) => text.includes(`status of ${status}`)));
    assert.deepEqual(unexpected, [], 'messages in the console of the browser');
    for (const { method, url } of this.requests) {
      const { origin, pathname, protocol } = new URL(url);
      if (protocol === 'data:' || protocol === 'blob:') continue;
      assert.ok(origin === base || origins.includes(origin), `a request to another origin: ${url}`);
      if (origin !== base || pages.test(pathname)) continue;
      const below = /^\/site\/[^/]+(\/.*)$/.exec(pathname)?.[1];
      const operation = documented.find((each) => each.method === method && each.path.test(below));
      assert.ok(operation, `a request that openapi.json does not describe: ${method} ${pathname}`);
      used.add(operation.operationId);
    }
    const withToken = this.requests.filter(({ url }) => Object.values(tokens).some((token) => url.includes(token)));
    assert.deepEqual(withToken, [], 'a token in a URL');
  }

  /** noStorage expects that nothing is stored that could hold a token. */
  async noStorage() {
    const stored = await this.page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
    assert.deepEqual(stored, ['', 0, 0], 'cookies and storage of the browser');
  }

  /** accessible expects no serious finding of axe. */
  async accessible(what) {
    await this.page.evaluate(axe);
    const { violations } = await this.page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const serious = violations.filter((v) => v.impact === 'serious' || v.impact === 'critical');
    assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.html} ${n.failureSummary}`).join(' | ')}`), [], `findings of axe: ${what}`);
  }

  /** fits expects that the page and its dialogs fit in windows of 320 pixels, and of 1280 by 800 pixels at 200 %. */
  async fits(what) {
    const usual = this.page.viewportSize();
    for (const viewport of [{ width: 640, height: 400 }, { width: 320, height: 640 }]) {
      await this.page.setViewportSize(viewport);
      const wide = await this.page.evaluate(() => [
        document.documentElement.scrollWidth - innerWidth,
        ...[...document.querySelectorAll('dialog[open]')].map((dialog) => Math.max(dialog.scrollWidth - dialog.clientWidth, dialog.getBoundingClientRect().right - innerWidth)),
      ]);
      assert.ok(wide.every((pixels) => pixels <= 0), `${what}: the page and its dialogs are ${wide} pixels too wide for ${viewport.width}`);
    }
    await this.page.setViewportSize(usual);
  }

  /** picture takes screenshots, light and dark, if they were asked for. */
  async picture(name) {
    if (!settings.screenshots) return;
    for (const colorScheme of ['light', 'dark']) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.screenshot({ path: `${settings.screenshots}/${name}-${colorScheme}.png` });
    }
    await this.page.emulateMedia({ colorScheme: null });
  }

  /** light expects that the responses which the page needed have less than 300 KiB, and returns their number and size. */
  async light() {
    await this.page.waitForLoadState('networkidle');
    const sizes = await this.page.evaluate(() => ['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind)).map((entry) => entry.transferSize));
    const bytes = sizes.reduce((a, b) => a + b, 0);
    assert.ok(sizes.every((size) => size > 0) && bytes < 300 * 1024, `bytes of the first page: ${sizes}`);
    return { count: sizes.length, bytes };
  }

  close() {
    return this.page.context().close();
  }
}

/**
 * firstPage opens a page three times, each in a window with an empty cache, and prints its size and how
 * long the fastest took until ready, which waits for what a person needs. It returns the last window.
 */
export async function firstPage(url, ready) {
  let window;
  const took = [];
  for (let i = 0; i < 3; i++) {
    await window?.close();
    window = await open();
    await window.page.goto(url);
    await ready(window.page);
    took.push(await window.page.evaluate(() => performance.now()));
  }
  const { count, bytes } = await window.light();
  console.log(`first page of ${new URL(url).pathname}: ${Math.min(...took).toFixed(0)} ms, ${(bytes / 1024).toFixed(0)} KiB in ${count} responses`);
  return window;
}

/** keeping runs what with a browser that keeps pages in its memory for its Back button, which Playwright turns off. */
export async function keeping(run) {
  const usual = browser;
  browser = await launch({ ignoreDefaultArgs: ['--disable-back-forward-cache'] });
  try {
    await run();
  } finally {
    await closeRest();
    await browser.close();
    browser = usual;
  }
}

/** open opens a window. */
export async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: 'en-GB', timezoneId: 'America/New_York', ignoreHTTPSErrors: true, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(60_000);
  const window = new Window(await context.newPage());
  opened.push(window);
  return window;
}

/** closeRest closes the windows that a test that failed left open, and prints what they show. */
export async function closeRest() {
  for (const window of opened.splice(0)) {
    if (window.page.isClosed()) continue;
    console.log(`${window.page.url()}\n${await window.page.locator('body').innerText()}\n${JSON.stringify(window.messages)}`);
    await window.close();
  }
}

/** serving waits until the API server, which learns of sites later than the controller, serves them and their issuers. */
export async function serving() {
  await eventually(async () => {
    const answer = await fetch(`${base}/site/${site}/fhir/.well-known/smart-configuration`);
    return answer.ok && (await answer.json()).console_clients;
  }, 'the site is served with its issuer');
}

/** eventually waits up to a minute until look returns what is true, and returns it. */
export async function eventually(look, what) {
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return assert.fail(`not within a minute: ${what}`);
}

/** focused waits until an element has the focus. */
export const focused = (element, what) => eventually(() => element.evaluate((e) => e === document.activeElement), `the focus is at ${what}`);

/** hold keeps requests of a page from the server until the function that it returns is called. */
export async function hold(page, url, method) {
  let release;
  const released = new Promise((resolve) => { release = resolve; });
  await page.route(url, async (route) => {
    if (route.request().method() === method) await released;
    await route.continue();
  });
  return release;
}

/** signIn opens a page of the console and signs in with a token. */
export async function signIn(window, token, path = '') {
  await window.page.goto(home + path);
  await window.page.getByLabel('Token').fill(token);
  await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await window.page.getByRole('navigation', { name: 'Pages', exact: true }).waitFor();
}

/** api requests a path below the site, to prepare what the console shows. */
export async function api(method, path, body, token = tokens.editor) {
  const kind = path.startsWith('fhir') ? 'application/fhir+json' : 'application/json';
  const response = await fetch(`${base}/site/${site}/${path}`, {
    method, headers: { Authorization: `Bearer ${token}`, Accept: kind, 'Content-Type': kind }, body: body && JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : undefined;
}
