import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Client } from './api/client';
import type { Metadata } from './metadata';

/** Site is the site of the page, for a person who is signed in. */
export interface Site {
  client: Client;
  metadata: Metadata;
}

export const SiteContext = createContext<Site | undefined>(undefined);

export function useSite(): Site {
  return useContext(SiteContext)!;
}
