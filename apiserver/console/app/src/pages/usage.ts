// What a site uses, and its requests and deliveries of the last hour, minute by minute.

import type { Client } from '../api/client';

export interface Storage {
  records: number;
  maxRecords?: number;
  bytes: number;
  maxBytes?: number;
  countedAt: string;
}

export interface RequestSample {
  at: string;
  requests: number;
  clientErrors: number;
  serverErrors: number;
  /** durations has the number of requests in each class of durations. */
  durations: number[];
}

/** Requests is what one API server has counted. */
export interface Requests {
  server: string;
  since: string;
  stepSeconds: number;
  boundsMs: number[];
  samples: RequestSample[];
}

export interface Deliveries {
  from: string;
  samples: { at: string; pending: number; delivered: number; failed: number }[];
}

export interface Usage {
  storage?: Storage;
  requests?: Requests;
  deliveries?: Deliveries;
}

/** Measured are figures, and the time of the server's clock at which they were true. */
export interface Measured {
  usage: Usage;
  now: number;
}

export async function loadUsage(client: Client): Promise<Measured> {
  const answer = await client.ahds('/site-usage');
  return { usage: answer.json, now: Date.parse(answer.headers.get('Date') ?? '') || Date.now() };
}

/** minute and shown are the number of milliseconds of a column of a graph, and how many columns a graph has. */
const minute = 60_000;
const shown = 60;

/** minutes returns the starts of the minutes of a graph. The last one is that of now. */
export function minutes(now: number): number[] {
  const last = Math.floor(now / minute) * minute;
  return Array.from({ length: shown }, (_, i) => last - (shown - 1 - i) * minute);
}

/** met adds what an API server has counted to that of others, instead of what it said before. */
export function met(servers: Requests[], latest: Requests): Requests[] {
  const isLatest = (one: Requests) => one.server === latest.server && one.since === latest.since;
  return [...servers.filter((one) => !isLatest(one)), latest].sort((a, b) => a.server.localeCompare(b.server) || a.since.localeCompare(b.since));
}

export interface Minute {
  at: number;
  requests: number;
  clientErrors: number;
  serverErrors: number;
  /** median and slow are durations in milliseconds that half and 95 % of the requests did not exceed, if there were any. */
  median?: number | undefined;
  slow?: number | undefined;
}

/** requestsBy returns the minutes of a graph, as the sum of what API servers have counted. */
export function requestsBy(servers: Requests[], now: number): Minute[] {
  return minutes(now).map((at) => {
    const samples = servers.flatMap((one) => one.samples.filter((s) => Date.parse(s.at) === at));
    const sum = (of: (s: RequestSample) => number) => samples.reduce((all, s) => all + of(s), 0);
    const bounds = servers[0]?.boundsMs ?? [];
    const durations = Array.from({ length: bounds.length + 1 }, (_, i) => sum((s) => s.durations[i] ?? 0));
    return {
      at, requests: sum((s) => s.requests), clientErrors: sum((s) => s.clientErrors), serverErrors: sum((s) => s.serverErrors),
      median: percentile(durations, bounds, 0.5), slow: percentile(durations, bounds, 0.95),
    };
  });
}

/** percentile returns the duration that a share of the requests did not exceed. Within a class, it assumes that they are spread evenly. */
export function percentile(durations: number[], bounds: number[], share: number): number | undefined {
  const wanted = share * durations.reduce((a, b) => a + b, 0);
  if (wanted === 0) return undefined;
  let seen = 0;
  for (const [i, n] of durations.entries()) {
    const upper = bounds[i];
    if (upper === undefined) break; // the last class has no upper limit
    if (seen + n >= wanted) {
      const lower = bounds[i - 1] ?? 0;
      return lower + ((wanted - seen) / n) * (upper - lower);
    }
    seen += n;
  }
  return bounds.at(-1);
}

const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

/** size returns a number of bytes for people. */
export function size(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const value = bytes / 1024 ** unit;
  return `${value.toLocaleString(undefined, { maximumFractionDigits: value < 10 ? 1 : 0 })} ${units[unit]}`;
}
