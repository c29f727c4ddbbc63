// A place is where a page of the console is: its site, and the path below the console.

export interface Place {
  /** siteId is empty at /console, where people choose a site. */
  siteId: string;
  /** base is the path of the console, without a trailing slash. */
  base: string;
  /** path is what follows base, such as /search/Patient. */
  path: string;
}

/** decoded returns a segment of a path without its escapes, or undefined if they are malformed. */
export function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** placeOf returns the place of a URL's path. */
export function placeOf(pathname: string): Place {
  const match = /^((?:\/site\/([^/]+))?\/console)(\/.*)?$/.exec(pathname);
  const siteId = decoded(match?.[2] ?? '');
  if (!match || siteId === undefined) return { siteId: '', base: '/console', path: '/' };
  return { siteId, base: match[1]!, path: match[3] ?? '/' };
}

/** api returns the path of a site, below which its APIs are. */
export function api(siteId: string): string {
  return `/site/${encodeURIComponent(siteId)}`;
}
