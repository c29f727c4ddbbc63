// The API reference. Its pages are complete without this script, which finds operations in the list, and
// sends requests. Links to other pages of the reference replace the main part of the page: so the token
// can stay in memory, and is never stored.
const docs = /^\/site\/[^/]+\/docs(\/(operations|schemas)\/[^/]+)?$/;
const token = document.getElementById('token');
const pages = new Map(); // the pages that were shown, by path
let path = location.pathname;

const main = () => document.querySelector('main');
const find = (id) => document.getElementById(id);

/** prepare shows what needs the script, in a part of the page that is new. */
function prepare(part) {
  for (const each of part.querySelectorAll('.script')) each.hidden = false;
}

/** filter hides what does not contain each word of the filter, and groups of which nothing is left. */
function filter() {
  const words = find('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const count = { operations: 0, schemas: 0 };
  for (const group of document.querySelectorAll('.group')) {
    const list = group.querySelector('ul');
    let shown = 0;
    for (const item of list.children) {
      const text = item.textContent.toLowerCase();
      item.hidden = !words.every((word) => text.includes(word));
      shown += item.hidden ? 0 : 1;
    }
    group.hidden = shown === 0;
    group.open = words.length > 0;
    count[list.className] += shown;
  }
  const of = (number, noun) => `${number} ${noun}${number === 1 ? '' : 's'}`;
  find('found').textContent = `${of(count.operations, 'operation')}, ${of(count.schemas, 'schema')}`;
}

/** show shows another page of the reference, as it was if it was shown before. */
async function show(url, back) {
  const known = pages.get(url.pathname);
  const page = known ?? await load(url);
  pages.set(path, { main: main(), title: document.title, top: scrollY });
  path = url.pathname;
  if (!back) history.pushState(null, '', url);
  main().replaceWith(page.main);
  document.title = page.title;
  page.main.focus({ preventScroll: true });
  scrollTo(0, back && known ? known.top : 0);
}

async function load(url) {
  const response = await fetch(url, { headers: { Accept: 'text/html' } });
  if (!response.ok) throw new Error(`the status of the page is ${response.status}`);
  const read = new DOMParser().parseFromString(await response.text(), 'text/html');
  const page = { main: document.adoptNode(read.querySelector('main')), title: read.title };
  prepare(page.main);
  return page;
}

/** requestOf returns the URL and the options of the request that the form describes. */
function requestOf(form) {
  const { method, base } = form.dataset;
  let below = form.dataset.path;
  const query = new URLSearchParams();
  const headers = new Headers();
  for (const input of form.querySelectorAll('[data-in]')) {
    const { name, lines } = input.dataset;
    const values = (lines ? input.value.split('\n') : [input.value]).map((value) => value.trim()).filter(Boolean);
    for (const value of values) {
      if (input.dataset.in === 'path') below = below.replace(`{${name}}`, encodeURIComponent(value));
      else if (input.dataset.in === 'header') headers.append(name, value);
      else if (lines === 'named') query.append(value.split('=', 1)[0], value.slice(value.indexOf('=') + 1));
      else query.append(name, value);
    }
  }
  const body = find('body')?.value || undefined;
  if (body) headers.set('Content-Type', find('type').value);
  if (find('accept')) headers.set('Accept', find('accept').value);
  const url = new URL(base + below.replace(/^\/$/, ''), location.origin);
  url.search = query;
  return { url, method, headers, body };
}

/** curlOf returns the command that sends the request, with the token of the variable TOKEN. */
function curlOf({ url, method, headers, body }) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const parts = [`curl -X ${method} ${quoted(url.href)}`, ...[...headers].map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`)];
  if (token.value) parts.push('-H "Authorization: Bearer $TOKEN"');
  if (body) parts.push(`--data-binary ${quoted(body)}`);
  return parts.join(' \\\n  ');
}

let sending; // the AbortController of the request

/** send sends the request of the form, and shows the response as it arrives. */
async function send(form) {
  sending?.abort();
  const own = sending = new AbortController();
  const [answer, status, head, text, cancel] = ['answer', 'status', 'answer-header', 'answer-body', 'cancel'].map(find);
  answer.hidden = cancel.hidden = false;
  status.textContent = 'Sending …';
  head.textContent = text.textContent = '';
  const began = performance.now();
  try {
    const request = requestOf(form);
    find('curl').textContent = curlOf(request);
    if (token.value) request.headers.set('Authorization', `Bearer ${token.value.trim()}`);
    const response = await fetch(request.url, { ...request, credentials: 'omit', cache: 'no-store', signal: own.signal });
    status.textContent = `${response.status} ${response.statusText}, ${Math.round(performance.now() - began)} ms`;
    head.textContent = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    await read(response, text);
  } catch (error) {
    status.textContent = own.signal.aborted ? `${status.textContent} Cancelled.` : `The request was not sent or not answered: ${error.message}`;
  } finally {
    if (own === sending) cancel.hidden = true;
  }
}

const maxShown = 1 << 20; // characters of a body that are shown

/** read shows the body of a response. */
async function read(response, text) {
  let body = '';
  const decoder = new TextDecoder();
  const reader = response.body?.getReader();
  for (;;) {
    const { done, value } = await reader?.read() ?? { done: true };
    if (done) break;
    body += decoder.decode(value, { stream: true });
    text.textContent = body.slice(0, maxShown);
  }
  if (body.length > maxShown) {
    text.textContent += `\n… ${body.length - maxShown} more characters`;
  } else if (body && /[/+]json\b/.test(response.headers.get('Content-Type'))) {
    text.textContent = indented(body);
  }
}

/** indented returns JSON with indents. Numbers keep their digits: a browser that would change them gets the text as it is. */
function indented(text) {
  if (!JSON.rawJSON) return text;
  const exact = (_, value, { source }) => (typeof value === 'number' ? JSON.rawJSON(source) : value);
  return JSON.stringify(JSON.parse(text, exact), null, 2);
}

document.addEventListener('click', (event) => {
  if (event.target.id === 'cancel') sending.abort();
  const link = event.target.closest('a');
  if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !docs.test(link.pathname)) return;
  event.preventDefault();
  const url = new URL(link.href);
  if (url.pathname !== path) show(url, false).catch(() => location.assign(url));
});
document.addEventListener('submit', (event) => {
  event.preventDefault();
  send(event.target);
});
document.addEventListener('input', (event) => {
  if (event.target.id === 'filter') filter();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, select, textarea') || !find('filter')) return;
  event.preventDefault();
  find('filter').focus();
});
addEventListener('popstate', () => show(new URL(location.href), true).catch(() => location.reload()));
addEventListener('beforeprint', () => {
  for (const each of document.querySelectorAll('details')) each.open = true;
});
history.scrollRestoration = 'manual';
prepare(document);
