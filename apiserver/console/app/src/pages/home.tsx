// The start page: what the site has, whether events arrive, and how fast the server answers this browser.

import { useEffect, useState } from 'preact/hooks';
import { batch, type Client, type Timing } from '../api/client';
import { ApiError } from '../api/errors';
import { addDays, dayIn, startOf } from '../dates';
import { Link } from '../router';
import { useSite } from '../site';
import { useLoad, View } from '../ui/load';
import { healthOf, loadWebhooks, type Health } from './webhooks';
import { Conditions, loadConditions } from './conditions';

/** interval is the number of milliseconds between two updates of the graphs. */
const interval = 10_000;

async function slotsToday(client: Client, zone: string) {
  const today = dayIn(Date.now(), zone);
  const range = `overlapsFrom=${startOf(today, zone).toISOString()}&overlapsTo=${startOf(addDays(today, 1), zone).toISOString()}&isActive=true`;
  const count = async (filter: string) => (await client.ahds(`/availability-slot?${range}&${filter}&pageSize=1`)).json.meta.total as number;
  const [booked, free] = await Promise.all([count('isBooked=true'), count('isBooked=false')]);
  return { booked, free };
}

/** permitted returns undefined for what the caller may not see. */
async function permitted<T>(load: Promise<T>): Promise<T | undefined> {
  try {
    return await load;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}

export default function Home() {
  const { client, metadata } = useSite();
  const loaded = useLoad(async () => {
    const [conditions, counts, slots, hooks] = await Promise.all([
      permitted(loadConditions(client)),
      batch(client, metadata.types.map((t) => `${t.type}?_summary=count`)),
      permitted(slotsToday(client, metadata.zone)),
      permitted(loadWebhooks(client)),
    ]);
    const health = hooks && (await permitted(Promise.all(hooks.map((hook) => healthOf(client, hook)))));
    return { conditions, counts, slots, health };
  }, [client]);
  const [, setTick] = useState(0);
  useEffect(() => {
    const timer = setInterval(async () => {
      if (document.visibilityState !== 'visible') return;
      try {
        await client.fhir('/metadata');
      } catch {
        // The failed request is in the graph.
      }
      setTick((n) => n + 1);
    }, interval);
    return () => clearInterval(timer);
  }, [client]);

  return (
    <>
      <h1>Overview</h1>
      <View of={loaded}>
        {({ conditions, counts, slots, health }) => (
          <div class="tiles">
            <section class="tile wide" aria-labelledby="conditions-title">
              <h2 id="conditions-title">Health</h2>
              <Conditions list={conditions} />
            </section>
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
              <Webhooks health={health} />
            </section>
            <section class="tile" aria-labelledby="latency-title">
              <h2 id="latency-title">Answers to this browser</h2>
              <Latency timings={client.timings} />
            </section>
          </div>
        )}
      </View>
      <p class="quiet">How much storage the Site uses, and the requests of all its clients, are in the metrics of the cluster.</p>
    </>
  );
}

function Webhooks({ health }: { health: Health[] | undefined }) {
  if (!health) return <p class="quiet">You may not list webhooks or their deliveries.</p>;
  if (health.length === 0) return <p class="quiet">The site has no webhook.</p>;
  const failing = health.filter((h) => h.failingSince || h.hook.disabledAt).length;
  const pending = health.reduce((sum, h) => sum + h.pending, 0);
  return (
    <p>
      <strong>{health.length}</strong> {health.length === 1 ? 'webhook' : 'webhooks'}, <strong>{failing}</strong> failing or disabled, <strong>{pending}</strong> pending deliveries. <Link to="/deliveries">See deliveries</Link>
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
