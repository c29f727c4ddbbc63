// The router of the console: pages are addressed by the path, and their queries by the fragment.
// The fragment never leaves the browser, so what people search for is in no log of a server.

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { placeOf, type Place } from './place';

const changed = new EventTarget();

export interface Route extends Place {
  /** query has the parameters in the fragment. */
  query: URLSearchParams;
}

function current(): Route {
  return { ...placeOf(location.pathname), query: new URLSearchParams(location.hash.slice(1)) };
}

/** go shows a page: a path below the console's base, with an optional query. */
export function go(path: string, query?: URLSearchParams): void {
  history.pushState(null, '', href(path, query));
  changed.dispatchEvent(new Event('go'));
}

/** replace replaces the URL, so that the page before is not in the window's history. */
export function replace(url: string): void {
  history.replaceState(null, '', url);
  changed.dispatchEvent(new Event('go'));
}

/** href returns the URL of a page. */
export function href(path: string, query?: URLSearchParams): string {
  const text = query?.toString();
  return placeOf(location.pathname).base + path + (text ? `#${text}` : '');
}

/** useRoute returns the current route, and renders again when it changes. */
export function useRoute(): Route {
  const [route, setRoute] = useState(current);
  useEffect(() => {
    const update = () => setRoute(current());
    addEventListener('popstate', update);
    changed.addEventListener('go', update);
    return () => {
      removeEventListener('popstate', update);
      changed.removeEventListener('go', update);
    };
  }, []);
  return route;
}

interface LinkProps {
  to: string;
  query?: URLSearchParams;
  class?: string;
  'aria-current'?: 'page' | undefined;
  children: ComponentChildren;
}

/** Link leads to another page without loading the application again, which would lose the token. */
export function Link({ to, query, children, ...rest }: LinkProps) {
  return (
    <a
      {...rest}
      href={href(to, query)}
      onClick={(event) => {
        if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        go(to, query);
      }}
    >
      {children}
    </a>
  );
}
