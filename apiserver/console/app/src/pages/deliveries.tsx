// Webhooks and their deliveries: what was sent, what the receiver answered, and sending again.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { instant } from '../dates';
import { go, Link } from '../router';
import { useSite } from '../site';
import { useAction } from '../ui/action';
import { announce } from '../ui/announce';
import { Dialog } from '../ui/dialog';
import { Empty, Failure, useLoad, View } from '../ui/load';
import { loadWebhooks, type Delivery, type Health, type Webhook } from './webhooks';
import type { PageProps } from './index';

/** pageIn returns the number of a page in a parameter of a query, counted from 0. */
function pageIn(query: URLSearchParams, name: string): number {
  const page = Number(query.get(name));
  return Number.isSafeInteger(page) && page > 0 ? page : 0;
}

/** changed returns a query with other values. Those that are empty or 0 are left out. */
function changed(query: URLSearchParams, changes: Record<string, string | number>): URLSearchParams {
  return new URLSearchParams(Object.entries({ ...Object.fromEntries(query), ...changes }).filter(([, value]) => value).map(([name, value]) => [name, String(value)]));
}

export default function Deliveries({ route, rest }: PageProps) {
  const { client } = useSite();
  const id = rest[0];
  const page = pageIn(route.query, 'webhooks');
  const hooks = useLoad(() => loadWebhooks(client, page), [client, page]);
  // The webhook of an address may be on another page of the list.
  const chosen = useLoad(async () => (id ? ((await client.ahds(`/webhook/${encodeURIComponent(id)}`)).json as Webhook) : undefined), [client, id]);
  const show = (next: number) => go(route.path, changed(route.query, { webhooks: next }));
  return (
    <>
      <h1>Deliveries</h1>
      <View of={hooks}>
        {({ list, total, pages }) =>
          total === 0 ? (
            <Empty>
              The site has no webhook. Create one with <code>POST webhook</code> of the AHDS API, or with kubectl.
            </Empty>
          ) : (
            <>
              {page >= pages ? <PastEnd /> : <Webhooks list={list} chosen={id} query={changed(new URLSearchParams(), { webhooks: page })} />}
              {(pages > 1 || page > 0) && (
                <Pager label="Pages of webhooks" previous="Newer webhooks" next="Older webhooks" page={page} pages={pages} onShow={show}>
                  {page < pages && `Page ${page + 1} of ${pages}, `}
                  {total} {total === 1 ? 'webhook' : 'webhooks'}
                </Pager>
              )}
            </>
          )
        }
      </View>
      {id && <View of={chosen}>{(hook) => hook && <Log key={id} hook={hook} query={route.query} onSent={hooks.reload} />}</View>}
    </>
  );
}

function PastEnd() {
  return <Empty>This page is past the end.</Empty>;
}

interface PagerProps {
  label: string;
  previous: string;
  next: string;
  /** page counts from 0. It may be past the end, from where previous leads to the last page. */
  page: number;
  pages: number;
  onShow: (page: number) => void;
  children?: ComponentChildren;
}

function Pager({ label, previous, next, page, pages, onShow, children }: PagerProps) {
  return (
    <nav class="pager" aria-label={label}>
      <button disabled={page === 0} onClick={() => onShow(Math.max(Math.min(page, pages) - 1, 0))}>
        {previous}
      </button>
      <button disabled={page + 1 >= pages} onClick={() => onShow(page + 1)}>
        {next}
      </button>
      <span>{children}</span>
    </nav>
  );
}

function Webhooks({ list, chosen, query }: { list: Health[]; chosen: string | undefined; query: URLSearchParams }) {
  const { metadata } = useSite();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Webhooks">
      <table>
        <thead>
          <tr>
            <th scope="col">Event type</th>
            <th scope="col">URL</th>
            <th scope="col">State</th>
            <th scope="col">Last success</th>
            <th scope="col">Failing since</th>
            <th scope="col">Pending</th>
          </tr>
        </thead>
        <tbody>
          {list.map(({ hook, pending, lastSuccess, failingSince }) => (
            <tr aria-current={hook.webhookId === chosen ? 'true' : undefined}>
              <th scope="row">
                <Link to={`/deliveries/${hook.webhookId}`} query={query}>{hook.eventType}</Link>
              </th>
              <td>
                <code>{hook.webhookUrl}</code>
              </td>
              <td>{hook.disabledAt ? `✕ disabled by the server: ${hook.disabledReason ?? ''}` : !hook.isActive ? '✕ not active' : failingSince ? '▲ failing' : '● active'}</td>
              <td>{instant(lastSuccess, metadata.zone) || <span class="quiet">none in the log</span>}</td>
              <td>{instant(failingSince, metadata.zone)}</td>
              <td>{pending}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

// reloads is how often the log is read again, once a second, after something was sent: it is in the log
// only after some time.
const reloads = 10;

const statuses = ['pending', 'delivered', 'failed', 'undelivered'];

function Log({ hook, query, onSent }: { hook: Webhook; query: URLSearchParams; onSent: () => void }) {
  const { client } = useSite();
  const [replaying, setReplaying] = useState(false);
  const [left, setLeft] = useState(0);
  const id = hook.webhookId;
  const status = query.get('status') ?? '';
  const page = pageIn(query, 'page');
  const request = changed(new URLSearchParams({ pageSize: '20' }), { page, status });
  const log = useLoad(async () => (await client.ahds(`/webhook/${id}/delivery?${request}`)).json, [client, id, status, page]);
  const show = (changes: Record<string, string | number>) => go(`/deliveries/${id}`, changed(query, changes));
  const { reload } = log;
  useEffect(() => {
    if (left === 0) return undefined;
    const timer = setTimeout(() => {
      reload();
      setLeft(left - 1);
    }, 1000);
    return () => clearTimeout(timer);
  }, [left, reload]);
  const sent = () => {
    reload();
    setLeft(reloads);
    onSent();
  };
  const test = useAction(async () => {
    await client.ahds(`/webhook/${id}/test`, { method: 'POST' });
    announce('A test event is on its way.');
    sent();
  });
  return (
    <section aria-labelledby="log-title">
      <div class="toolbar">
        <h2 id="log-title">
          {hook.eventType} to <code>{hook.webhookUrl}</code>
        </h2>
        <div class="buttons">
          <label class="inline">
            Status
            <select data-search value={status} onChange={(event) => show({ status: event.currentTarget.value, page: 0 })}>
              <option value="">all</option>
              {statuses.map((s) => (
                <option value={s}>{s}</option>
              ))}
            </select>
          </label>
          <button onClick={() => { log.reload(); onSent(); }}>Refresh</button>
          <button aria-disabled={test.busy} onClick={test.act}>
            Send a test
          </button>
          <button onClick={() => setReplaying(true)}>Replay …</button>
        </div>
      </div>
      {test.error !== undefined && <Failure error={test.error} />}
      <View of={log}>
        {(list) => (
          <>
            <p class="quiet" role="status">
              {list.meta.total} {list.meta.total === 1 ? 'delivery' : 'deliveries'}
            </p>
            {list.meta.total === 0 ? (
              <Empty>No delivery in the log. Completed deliveries are kept for some days.</Empty>
            ) : page >= list.meta.totalPages ? (
              <PastEnd />
            ) : (
              <ul class="plain deliveries">
                {list.data.map((d: Delivery) => (
                  <Item key={d.deliveryId} delivery={d} onSent={sent} />
                ))}
              </ul>
            )}
            <Pager label="Pages of deliveries" previous="Previous" next="Next" page={page} pages={list.meta.totalPages} onShow={(next) => show({ page: next })} />
          </>
        )}
      </View>
      {replaying && <Replay id={id} onClose={() => setReplaying(false)} onSent={sent} />}
    </section>
  );
}

const marks: Record<Delivery['status'], string> = { pending: '◐', delivered: '●', failed: '▲', undelivered: '✕' };

function Item({ delivery, onSent }: { delivery: Delivery; onSent: () => void }) {
  const { client, metadata } = useSite();
  const { busy, error, act } = useAction(async () => {
    await client.ahds(`/webhook/${delivery.webhookId}/delivery/${delivery.deliveryId}/redeliver`, { method: 'POST' });
    announce('The delivery is sent again.');
    onSent();
  });
  const last = delivery.attempts.at(-1);
  return (
    <li class={`delivery ${delivery.status}`} data-delivery={delivery.deliveryId}>
      <details>
        <summary>
          <strong>
            {marks[delivery.status]} {delivery.status}
          </strong>{' '}
          {delivery.subject ?? delivery.eventId} <span class="quiet">{instant(delivery.acceptedAt, metadata.zone)}</span>{' '}
          <span class="quiet">
            {delivery.attempts.length} {delivery.attempts.length === 1 ? 'attempt' : 'attempts'}
            {last && `, the last: ${last.status ?? last.reason} in ${last.latencyMs} ms`}
          </span>
        </summary>
        {delivery.nextAttemptAt && <p>Next attempt: {instant(delivery.nextAttemptAt, metadata.zone)}</p>}
        <p class="quiet">
          Event <code>{delivery.eventId}</code>
        </p>
        <ol>
          {delivery.attempts.map((a) => (
            <li>
              {instant(a.at, metadata.zone)}: <strong>{a.status ?? a.reason}</strong> in {a.latencyMs} ms. {a.message}
              {a.response && <pre class="json">{a.response}</pre>}
            </li>
          ))}
        </ol>
      </details>
      <button class="small" aria-disabled={busy} onClick={act} aria-label={`Redeliver ${delivery.subject ?? delivery.eventId}`}>
        Redeliver
      </button>
      {error !== undefined && <Failure error={error} />}
    </li>
  );
}

/** replayed says what a replay did. */
export function replayed(count: number, skipped: number): string {
  const deliveries = (n: number) => `${n} ${n === 1 ? 'delivery is' : 'deliveries are'}`;
  return `${deliveries(count)} sent again.${skipped > 0 ? ` ${deliveries(skipped)} not, because the content is no longer stored.` : ''}`;
}

function Replay({ id, onClose, onSent }: { id: string; onClose: () => void; onSent: () => void }) {
  const { client } = useSite();
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const [all, setAll] = useState(false);
  const { busy, error, act } = useAction(async () => {
    const body = {
      from: new Date(from).toISOString(),
      ...(to && { to: new Date(to).toISOString() }),
      ...(all && { status: ['delivered', 'failed', 'undelivered'] }),
    };
    const { count, skipped } = (await client.ahds(`/webhook/${id}/replay`, { method: 'POST', body: JSON.stringify(body) })).json;
    announce(replayed(count, skipped));
    onSent();
    return onClose;
  });
  return (
    <Dialog title="Replay deliveries" onClose={onClose}>
      <form
        class="signin"
        onSubmit={(event) => {
          event.preventDefault();
          void act();
        }}
      >
        <label>
          Accepted at or after, by the clock of this browser
          <input type="datetime-local" required value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        </label>
        <label>
          And before (optional)
          <input type="datetime-local" value={to} onInput={(event) => setTo(event.currentTarget.value)} />
        </label>
        <label class="inline">
          <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} />
          Also those that were delivered
        </label>
        {error !== undefined && <Failure error={error} />}
        <button class="primary" aria-disabled={busy}>
          Replay
        </button>
      </form>
    </Dialog>
  );
}
