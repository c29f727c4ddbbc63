// The start page: what the site has, whether it works and events arrive, and how much is asked of it.

import { useEffect, useRef, useState } from 'preact/hooks';
import { batch, type Client, type Timing } from '../api/client';
import { addDays, dayIn, startOf } from '../dates';
import { loadRights } from '../rights';
import { Link } from '../router';
import { useSite } from '../site';
import { useLoad, View } from '../ui/load';
import { loadWebhooks, type WebhookPage } from './webhooks';
import { Conditions, loadConditions, type Condition } from './conditions';
import { DeliveryRates, RequestRates, StorageUsed } from './figures';
import { loadUsage, met, type Measured, type Requests } from './usage';

/** interval is the number of milliseconds between two updates of the graphs. */
const interval = 10_000;

async function slotsToday(client: Client, zone: string) {
  const today = dayIn(Date.now(), zone);
  const range = `overlapsFrom=${startOf(today, zone).toISOString()}&overlapsTo=${startOf(addDays(today, 1), zone).toISOString()}&isActive=true`;
  const count = async (filter: string) => (await client.ahds(`/availability-slot?${range}&${filter}&pageSize=1`)).json.meta.total as number;
  const [booked, free] = await Promise.all([count('isBooked=true'), count('isBooked=false')]);
  return { booked, free };
}

/** State is how the site does. Only persons with the right to get the Site may read it. */
interface State extends Measured {
  conditions: Condition[];
}

async function loadState(client: Client): Promise<State> {
  const [conditions, measured] = await Promise.all([loadConditions(client), loadUsage(client)]);
  return { conditions, ...measured };
}

export default function Home() {
  const { client, metadata } = useSite();
  const loaded = useLoad(async () => {
    const may = await loadRights(client);
    const [state, counts, slots, hooks] = await Promise.all([
      may('get', 'sites') ? loadState(client) : undefined,
      batch(client, metadata.types.map((t) => `${t.type}?_summary=count`)),
      may('list', 'availabilityslots') ? slotsToday(client, metadata.zone) : undefined,
      may('list', 'webhooks') && may('list', 'webhooks/deliveries') ? loadWebhooks(client, 0) : undefined,
    ]);
    return { state, counts, slots, hooks };
  }, [client]);
  const state = useLive(client, loaded.data?.state);

  return (
    <>
      <h1>Overview</h1>
      <View of={loaded}>
        {({ counts, slots, hooks }) => (
          <div class="tiles">
            {state && <Health state={state} />}
            <section class="tile wide" aria-labelledby="records-title">
              <h2 id="records-title">Records</h2>
              <ul class="counts">
                {metadata.types.map((t, i) => {
                  const total: number | undefined = counts[i]?.total;
                  return (
                    <li>
                      {total === undefined ? (
                        <span class="quiet">{t.type}: no access</span>
                      ) : (
                        <Link to={`/search/${t.type}`}>
                          <strong>{total.toLocaleString()}</strong> {t.type}
                        </Link>
                      )}
                    </li>
                  );
                })}
              </ul>
            </section>
            <section class="tile" aria-labelledby="slots-title">
              <h2 id="slots-title">Slots today</h2>
              {slots ? (
                <p>
                  <strong>{slots.booked}</strong> booked, <strong>{slots.free}</strong> not booked. <Link to="/week">See the week</Link>
                </p>
              ) : (
                <p class="quiet">You may not list slots.</p>
              )}
            </section>
            <section class="tile" aria-labelledby="webhooks-title">
              <h2 id="webhooks-title">Webhooks</h2>
              <Webhooks hooks={hooks} />
            </section>
            <section class="tile" aria-labelledby="latency-title">
              <h2 id="latency-title">Answers to this browser</h2>
              <Latency timings={client.timings} />
            </section>
          </div>
        )}
      </View>
      {loaded.data && !loaded.data.state && (
        <p class="quiet">The conditions of the site, its storage and its load are shown to people with the right to get the Site, as in the role paddock-viewer.</p>
      )}
    </>
  );
}

interface Live extends State {
  /** servers are the API servers that have answered, each with what it said last. */
  servers: Requests[];
}

/** useLive updates the state while the page is visible. Without a state, it measures how fast the server answers. */
function useLive(client: Client, first: State | undefined): Live | undefined {
  const [state, setState] = useState<State>();
  const [, setTick] = useState(0);
  const servers = useRef<Requests[]>([]);
  useEffect(() => setState(first), [first]);
  useEffect(() => {
    let current = true;
    let timer = 0;
    const update = async () => {
      if (document.visibilityState === 'visible') {
        try {
          const next = first && (await loadState(client));
          if (!next) await client.fhir('/metadata');
          else if (current) setState(next);
        } catch {
          // The failed request is in the graph.
        }
      }
      if (!current) return;
      setTick((n) => n + 1);
      timer = window.setTimeout(update, interval);
    };
    timer = window.setTimeout(update, interval);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [client, first]);
  if (!state) return undefined;
  if (state.usage.requests) servers.current = met(servers.current, state.usage.requests);
  return { ...state, servers: servers.current };
}

function Health({ state: { conditions, usage, servers, now } }: { state: Live }) {
  return (
    <>
      <section class="tile wide" aria-labelledby="conditions-title">
        <h2 id="conditions-title">Health</h2>
        <Conditions list={conditions} />
      </section>
      {servers.length > 0 && (
        <section class="tile wide" aria-labelledby="requests-title">
          <h2 id="requests-title">Requests</h2>
          <RequestRates servers={servers} now={now} />
        </section>
      )}
      <section class="tile" aria-labelledby="storage-title">
        <h2 id="storage-title">Storage</h2>
        <StorageUsed storage={usage.storage} />
      </section>
      <section class="tile broad" aria-labelledby="deliveries-title">
        <h2 id="deliveries-title">Deliveries</h2>
        <DeliveryRates deliveries={usage.deliveries} now={now} />
      </section>
    </>
  );
}

function Webhooks({ hooks }: { hooks: WebhookPage | undefined }) {
  if (!hooks) return <p class="quiet">You may not list webhooks or their deliveries.</p>;
  const { list, total } = hooks;
  if (total === 0) return <p class="quiet">The site has no webhook.</p>;
  const failing = list.filter((h) => h.failingSince || h.hook.disabledAt).length;
  const pending = list.reduce((sum, h) => sum + h.pending, 0);
  return (
    <p>
      <strong>{total.toLocaleString()}</strong> {total === 1 ? 'webhook' : 'webhooks'}
      {total > list.length ? `; of the newest ${list.length}: ` : ', '}
      <strong>{failing}</strong> failing or disabled, <strong>{pending}</strong> pending deliveries. <Link to="/deliveries">See deliveries</Link>
    </p>
  );
}

const width = 240;
const height = 48;

/** Latency is a graph of the requests of this window, with the latest at the right. */
function Latency({ timings }: { timings: Timing[] }) {
  const shown = timings.slice(-60);
  if (shown.length === 0) return <p class="quiet">No request yet.</p>;
  const sorted = shown.map((t) => t.took).sort((a, b) => a - b);
  const most = Math.max(sorted.at(-1)!, 1);
  const median = sorted[Math.floor(sorted.length / 2)]!;
  const failed = shown.filter((t) => t.failed).length;
  const step = width / shown.length;
  return (
    <figure class="graph">
      <svg viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`Durations of the last ${shown.length} requests`}>
        {shown.map((t, i) => {
          const size = Math.max((t.took / most) * height, 1);
          return <rect class={t.failed ? 'bad' : ''} x={i * step} y={height - size} width={Math.max(step - 1, 1)} height={size} />;
        })}
      </svg>
      <figcaption>
        median {median.toFixed(0)} ms, longest {most.toFixed(0)} ms, {failed} failed, of {shown.length} requests
      </figcaption>
    </figure>
  );
}
