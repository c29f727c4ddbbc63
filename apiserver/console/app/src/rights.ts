// The rights of the person to the AHDS API, so that pages leave out what the server would refuse.

import type { Client } from './api/client';

export interface ResourceRights {
  group: string;
  resource: string;
  verbs: string[];
}

/** Rights reports whether the person may use a verb on a resource. */
export type Rights = (verb: string, resource: string) => boolean;

export async function loadRights(client: Client): Promise<Rights> {
  const all: ResourceRights[] = (await client.ahds('/rights')).json.rights;
  return (verb, resource) => all.some((one) => one.resource === resource && one.verbs.includes(verb));
}
