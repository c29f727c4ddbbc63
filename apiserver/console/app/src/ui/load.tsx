// Loading of data, with the states that every page has.

import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/errors';

export interface Loaded<T> {
  data?: T | undefined;
  error?: unknown;
  loading: boolean;
  reload: () => void;
}

const retries = new EventTarget();

/** retryFailed loads again what could not be loaded, such as after signing in again. */
export function retryFailed(): void {
  retries.dispatchEvent(new Event('retry'));
}

interface State<T> {
  data?: T;
  error?: unknown;
  loading: boolean;
}

/** Source is a load with one set of dependencies. */
interface Source<T> {
  load: () => Promise<T>;
  /** runs is how often load was started. Only the result of the latest run is used. */
  runs: number;
  /** current is false before the source is used, and after its dependencies have changed. */
  current: boolean;
}

/**
 * useLoad runs load when the component mounts and when a dependency changes. Results of former dependencies are
 * dropped, and a reload of former dependencies does nothing.
 */
export function useLoad<T>(load: () => Promise<T>, dependencies: unknown[]): Loaded<T> {
  const source = useMemo<Source<T>>(() => ({ load, runs: 0, current: false }), dependencies);
  const [{ of, ...state }, setState] = useState<State<T> & { of: Source<T> }>({ of: source, loading: true });
  const reload = useCallback(() => {
    if (!source.current) return;
    const run = ++source.runs;
    const show = (next: State<T>) => source.current && run === source.runs && setState({ of: source, ...next });
    setState((before) => ({ ...(before.of === source && before), of: source, loading: true }));
    source.load().then(
      (data) => show({ data, loading: false }),
      (error) => show({ error, loading: false }),
    );
  }, [source]);
  useEffect(() => {
    source.current = true;
    reload();
    return () => {
      source.current = false;
    };
  }, [source]);
  const shown: State<T> = of === source ? state : { loading: true };
  useEffect(() => {
    if (shown.error === undefined) return;
    retries.addEventListener('retry', reload);
    return () => retries.removeEventListener('retry', reload);
  }, [reload, shown.error]);
  return { ...shown, reload };
}

/** View shows the data, or that it is loading, or why there is none. It takes the focus of an element in it that is removed or disabled. */
export function View<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  const hadFocus = ref.current?.contains(document.activeElement); // before the content changes
  useEffect(() => {
    if (hadFocus && document.activeElement === document.body) ref.current!.focus();
  });
  const stale = of.loading && of.data !== undefined;
  return (
    <div ref={ref} tabIndex={-1} aria-busy={stale} class={stale ? 'stale' : ''}>
      {of.error !== undefined ? <Failure error={of.error} retry={of.reload} /> : of.data === undefined ? <Loading /> : children(of.data)}
    </div>
  );
}

/** Loading says after some seconds that the server is slow. */
export function Loading() {
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 4000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p class="state" role="status">
      <span class="spinner" aria-hidden="true" /> {slow ? 'The server takes longer than usual. Still loading …' : 'Loading …'}
    </p>
  );
}

/** headings are those of errors, by code or status. */
const headings: Record<string, string> = {
  content_gone: 'No longer stored',
  timeout: 'No answer',
  0: 'Offline',
  401: 'The session has ended',
  403: 'No access',
  404: 'Not found',
  410: 'Deleted',
  429: 'Too many requests',
};

/** Failure shows an error: the server's sentence, its code, and what is wrong in detail. */
export function Failure({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  if (!(error instanceof ApiError)) {
    return <div class="state failure" role="alert">{error instanceof Error ? error.message : String(error)}</div>;
  }
  const details = error.issues.filter((issue) => issue.text !== error.message || issue.at);
  return (
    <div class="state failure" role="alert">
      <h2>{headings[error.code] ?? headings[error.status] ?? (error.status >= 500 ? 'The server failed' : 'The request was refused')}</h2>
      <p>{error.message}</p>
      {details.length > 0 && (
        <ul>
          {details.map((issue) => (
            <li>
              {issue.at && <code>{issue.at}</code>} {issue.text}
            </li>
          ))}
        </ul>
      )}
      <p class="quiet">
        {error.status > 0 && <>Status {error.status}. </>}
        {error.code && (
          <>
            Code {error.page ? <a href={error.page}>{error.code}</a> : <code>{error.code}</code>}.
          </>
        )}
      </p>
      {retry && error.status !== 401 && error.status !== 403 && <button onClick={retry}>Try again</button>}
    </div>
  );
}

/** Empty says that a list has nothing, and what to do. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="state empty">{children}</div>;
}
