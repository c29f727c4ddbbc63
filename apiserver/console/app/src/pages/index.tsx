// The pages of the console. The code of a page is loaded when it is first shown.

import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { decoded } from '../place';
import { Link, type Route } from '../router';
import { Empty, Failure, Loading } from '../ui/load';

export interface PageProps {
  route: Route;
  /** rest has the segments of the path after the section. */
  rest: string[];
}

interface Page {
  section: string;
  title: string;
  /** key is the letter that leads to the page after g. */
  key: string;
}

/** pages are those of the navigation. */
export const pages: Page[] = [
  { section: '', title: 'Home', key: 'h' },
  { section: 'search', title: 'Search', key: 's' },
  { section: 'week', title: 'Week', key: 'w' },
  { section: 'deliveries', title: 'Deliveries', key: 'd' },
  { section: 'audit', title: 'Audit', key: 'a' },
];

type Loader = () => Promise<{ default: ComponentType<PageProps> }>;

const loaders: Record<string, Loader> = {
  '': () => import('./home'),
  search: () => import('./search'),
  record: () => import('./record'),
  history: () => import('./history'),
  week: () => import('./week'),
  deliveries: () => import('./deliveries'),
  audit: () => import('./audit'),
};

/** loaderOf returns what loads the page of a section. */
function loaderOf(section: string): Loader | undefined {
  const name = section === 'callback' ? '' : section;
  return Object.hasOwn(loaders, name) ? loaders[name] : undefined;
}

/** ofRecords are the sections whose pages are about one record, with its type and id after the section. */
const ofRecords = ['record', 'history'];

/**
 * exists reports whether there is a page of a section, with the segments of the path after it. A malformed segment
 * is undefined.
 */
export function exists(section: string, rest: (string | undefined)[]): rest is string[] {
  return loaderOf(section) !== undefined && !rest.includes(undefined) && (!ofRecords.includes(section) || Boolean(rest[0] && rest[1]));
}

/** NoSuchPage says that an address leads nowhere. */
export function NoSuchPage() {
  return (
    <Empty>
      <h1>There is no such page</h1>
      <p>
        <Link to="/">Go to the start</Link>
      </p>
    </Empty>
  );
}

/** PageOf shows the page of a section. */
export function PageOf({ route, section }: { route: Route; section: string }) {
  const [shown, setShown] = useState<{ section: string; Page?: ComponentType<PageProps>; error?: unknown }>();
  const rest = route.path.split('/').slice(2).map(decoded);
  useEffect(() => {
    let current = true;
    loaderOf(section)?.().then(
      (module) => current && setShown({ section, Page: module.default }),
      (error) => current && setShown({ section, error }),
    );
    return () => {
      current = false;
    };
  }, [section]);
  if (!exists(section, rest)) return <NoSuchPage />;
  if (!shown || shown.section !== section) return <Loading />;
  if (!shown.Page) return <Failure error={new Error('This page could not be loaded. Check the connection, then reload; you will sign in again.')} />;
  // The page of another record begins anew. Other pages stay while the path changes, so that they keep the focus.
  return <shown.Page key={ofRecords.includes(section) ? route.path : section} route={route} rest={rest} />;
}
