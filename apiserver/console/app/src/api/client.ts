// The client of a site's APIs. It keeps the token in memory, and nowhere else.

import { api } from '../place';
import { ApiError, errorOf, type Json } from './errors';

export interface Answer {
  status: number;
  headers: Headers;
  /** text is the body as the server sent it: parsing it would lose the digits of decimals. */
  text: string;
  json: Json;
}

export interface RequestOptions {
  method?: string;
  headers?: Record<string, string>;
  body?: string | undefined;
  /** accept is the media type of the answer. Default: that of the API. */
  accept?: string;
}

/** Timing is when a request began and how many milliseconds it took. */
export interface Timing {
  at: number;
  took: number;
  failed: boolean;
}

/** kept is the number of timings that a client keeps. */
const kept = 120;

/** timeout is how many milliseconds a request may take, with its response. One that takes longer fails. */
const timeout = 120_000;

const fhirJson = 'application/fhir+json';

export class Client {
  readonly timings: Timing[] = [];
  /** holds has the tokens of the slots that are held here, by slot. */
  readonly holds = new Map<string, string>();
  #token = '';
  /** #session aborts the requests under way when the session ends. */
  #session = new AbortController();

  constructor(
    readonly siteId: string,
    /** onExpired is called when the server does not accept the token any more. */
    private readonly onExpired: () => void = () => {},
  ) {}

  use(token: string): void {
    this.#token = token;
  }

  /** forget ends the session: it aborts the requests under way, and removes the token and those of held slots. */
  forget(): void {
    this.#token = '';
    this.#session.abort();
    this.#session = new AbortController();
    this.holds.clear();
    this.timings.length = 0;
  }

  /** fhir requests a path of the FHIR API, which begins with a slash unless it is empty. */
  fhir(path: string, options: RequestOptions = {}): Promise<Answer> {
    return this.#send(`/fhir${path}`, fhirJson, options);
  }

  /** ahds requests a path of the AHDS API. */
  ahds(path: string, options: RequestOptions = {}): Promise<Answer> {
    return this.#send(`/ahds/v1${path}`, 'application/json', options);
  }

  async #send(path: string, mediaType: string, options: RequestOptions): Promise<Answer> {
    const headers = new Headers(options.headers);
    headers.set('Accept', options.accept ?? mediaType);
    if (this.#token) headers.set('Authorization', `Bearer ${this.#token}`);
    if (options.body !== undefined && !headers.has('Content-Type')) headers.set('Content-Type', mediaType);
    const at = Date.now();
    const began = performance.now();
    const time = (failed: boolean) => {
      this.timings.push({ at, took: performance.now() - began, failed });
      if (this.timings.length > kept) this.timings.shift();
    };
    const session = this.#session.signal;
    const limit = AbortSignal.timeout(timeout);
    let response: Response;
    let text: string;
    try {
      response = await fetch(api(this.siteId) + path, {
        method: options.method ?? 'GET',
        headers,
        body: options.body ?? null,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        signal: AbortSignal.any([session, limit]),
      });
      text = await response.text();
    } catch (error) {
      if (session.aborted) throw error;
      time(true);
      if (limit.aborted) throw new ApiError(0, 'timeout', `The server did not answer within ${timeout / 60_000} minutes. If it was to change something, check whether it did, then try again.`);
      throw new ApiError(0, 'offline', 'The server cannot be reached. Check the connection, then try again.');
    }
    time(response.status >= 500);
    if (!response.ok) {
      if (response.status === 401 && this.#token) this.onExpired();
      throw errorOf(response.status, response.statusText, text);
    }
    return {
      status: response.status,
      headers: response.headers,
      text,
      get json() {
        return text ? JSON.parse(text) : undefined;
      },
    };
  }
}

/** batch sends reads and searches in one request and returns the resources, undefined where one failed. */
export async function batch(client: Client, urls: string[]): Promise<Json[]> {
  if (urls.length === 0) return [];
  const body = { resourceType: 'Bundle', type: 'batch', entry: urls.map((url) => ({ request: { method: 'GET', url } })) };
  const answer = (await client.fhir('', { method: 'POST', body: JSON.stringify(body) })).json;
  return urls.map((_, i) => {
    const entry = answer.entry?.[i];
    return entry?.response?.status?.startsWith('2') ? entry.resource : undefined;
  });
}
