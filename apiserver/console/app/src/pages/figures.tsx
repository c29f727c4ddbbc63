// The figures of a site: what it stores, its requests and its deliveries.

import { instant } from '../dates';
import { useSite } from '../site';
import { Bars, Key, Lines } from '../ui/graph';
import { minutes, requestsBy, size, type Deliveries, type Requests, type Storage } from './usage';

export function StorageUsed({ storage }: { storage: Storage | undefined }) {
  const { metadata } = useSite();
  if (!storage) return <p class="quiet">The storage has not been counted yet.</p>;
  return (
    <>
      <Amount name="Records" value={storage.records} most={storage.maxRecords} show={(n) => n.toLocaleString()} />
      <Amount name="Data" value={storage.bytes} most={storage.maxBytes} show={size} />
      <p class="quiet">Of the whole site, with earlier versions. Counted {instant(storage.countedAt, metadata.zone)}.</p>
    </>
  );
}

/** Amount shows a number, and its limit if there is one. */
function Amount({ name, value, most, show }: { name: string; value: number; most: number | undefined; show: (n: number) => string }) {
  if (!most) {
    return (
      <p>
        {name}: <strong>{show(value)}</strong>, without a limit
      </p>
    );
  }
  const share = (value / most).toLocaleString(undefined, { style: 'percent', maximumFractionDigits: 1 });
  return (
    <div class="amount">
      <p>
        {name}: <strong>{show(value)}</strong> of {show(most)} ({share})
      </p>
      <meter min={0} max={most} high={0.8 * most} value={value} aria-label={`${name}: ${share} of the limit`} />
    </div>
  );
}

export function RequestRates({ servers, now }: { servers: Requests[]; now: number }) {
  const { metadata } = useSite();
  const shown = requestsBy(servers, now);
  const sum = (of: (m: (typeof shown)[number]) => number) => shown.reduce((all, m) => all + of(m), 0);
  const [all, refused, failed] = [sum((m) => m.requests), sum((m) => m.clientErrors), sum((m) => m.serverErrors)];
  const last = shown.findLast((m) => m.requests > 0);
  return (
    <>
      <div class="graphs">
        <Bars
          label={`Requests in each minute of the last hour: ${all} in total`}
          columns={shown.map((m) => ({
            parts: [
              { value: m.requests - m.clientErrors - m.serverErrors, class: 'good' }, { value: m.clientErrors, class: 'refused' }, { value: m.serverErrors, class: 'bad' },
            ],
          }))}
        >
          <strong>{all.toLocaleString()}</strong> requests in the last hour, by minute: <Key class="good">done</Key>{' '}
          <Key class="refused">{refused.toLocaleString()} refused (4xx)</Key> <Key class="bad">{failed.toLocaleString()} failed (5xx)</Key>
        </Bars>
        <Lines
          label="Duration of requests in each minute of the last hour"
          unit="ms"
          lines={[
            { class: 'slow', values: shown.map((m) => m.slow) }, { class: 'median', values: shown.map((m) => m.median) },
          ]}
        >
          {last ? (
            <>
              Duration, latest: <Key class="median">half within {Math.ceil(last.median!)} ms</Key> <Key class="slow">95 % within {Math.ceil(last.slow!)} ms</Key>
            </>
          ) : (
            'No request in the last hour.'
          )}
        </Lines>
      </div>
      <p class="quiet">
        {servers.length === 1 ? (
          <>
            Requests to the API server <code>{servers[0]!.server}</code> only, which counts since {instant(servers[0]!.since, metadata.zone)}. If the site has several API servers,
            each counts its own.
          </>
        ) : (
          <>
            Sum of the {servers.length} API servers that have answered this page: {servers.map((s) => s.server).join(', ')}. The site may have more.
          </>
        )}
      </p>
    </>
  );
}

export function DeliveryRates({ deliveries, now }: { deliveries: Deliveries | undefined; now: number }) {
  const { metadata } = useSite();
  if (!deliveries) return <p class="quiet">The deliveries cannot be counted while the storage is not open.</p>;
  const starts = minutes(now);
  const shown = starts.map((at) => deliveries.samples.find((s) => Date.parse(s.at) === at) ?? { pending: 0, delivered: 0, failed: 0 });
  const sum = (of: (s: (typeof shown)[number]) => number) => shown.reduce((all, s) => all + of(s), 0);
  const [delivered, pending, failed] = [sum((s) => s.delivered), sum((s) => s.pending), sum((s) => s.failed)];
  return (
    <>
      <Bars
        label={`Deliveries of each minute of the last hour: ${delivered} delivered, ${pending} pending, ${failed} failed`}
        columns={shown.map((s) => ({ parts: [{ value: s.delivered, class: 'good' }, { value: s.pending, class: 'refused' }, { value: s.failed, class: 'bad' }] }))}
      >
        By the minute in which events were accepted: <Key class="good">{delivered.toLocaleString()} delivered</Key>{' '}
        <Key class="refused">{pending.toLocaleString()} pending</Key> <Key class="bad">{failed.toLocaleString()} failed</Key>
      </Bars>
      <p class="quiet">
        Of all webhooks of the site
        {Date.parse(deliveries.from) > starts[0]! && <>, complete since {instant(deliveries.from, metadata.zone)}, because there were more than are counted</>}.
      </p>
    </>
  );
}
