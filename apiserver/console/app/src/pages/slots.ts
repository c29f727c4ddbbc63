// Slots of a week, and the resources that they belong to.

import { batch, type Client } from '../api/client';
import type { Json } from '../api/errors';
import { addDays, dayIn, startOf } from '../dates';
import { titleOf } from '../fhir/display';

export interface Slot {
  availabilitySlotId: string;
  startAt: string;
  endAt: string;
  locationId: string;
  resourceId: string;
  isActive: boolean;
  isBooked: boolean;
  heldUntil?: string;
  serviceType?: { code: string; display?: string } | null;
  notes?: string;
}

export type State = 'free' | 'held' | 'booked' | 'inactive';

export function stateOf(slot: Slot, now: number): State {
  if (!slot.isActive) return 'inactive';
  if (slot.isBooked) return 'booked';
  return slot.heldUntil && Date.parse(slot.heldUntil) > now ? 'held' : 'free';
}

/** maxPages is how many pages of 100 slots are read for a week. */
const maxPages = 10;

export interface Week {
  slots: Slot[];
  /** total is the number of slots of the week, which may be more than were read. */
  total: number;
  /** names has the names of resources and locations by their ids, as far as they are known. */
  names: Map<string, string>;
}

/** loadWeek returns the slots of the seven days from a day on, in a zone. */
export async function loadWeek(client: Client, monday: string, zone: string): Promise<Week> {
  const range = `overlapsFrom=${startOf(monday, zone).toISOString()}&overlapsTo=${startOf(addDays(monday, 7), zone).toISOString()}`;
  const slots: Slot[] = [];
  let total = 0;
  for (let page = 0; page < maxPages; page++) {
    const list = (await client.ahds(`/availability-slot?${range}&pageSize=100&page=${page}`)).json;
    slots.push(...list.data);
    total = list.meta.total;
    if (page + 1 >= list.meta.totalPages) break;
  }
  const names = await namesOf(client, [...new Set(slots.flatMap((s) => [s.resourceId, s.locationId]))]);
  return { slots, total, names };
}

/** bookable are the types that a resource or a location of a slot may have. */
const bookable = ['Practitioner', 'PractitionerRole', 'Location', 'Device', 'HealthcareService'];

/** maxNames is the maximum number of UUIDs whose names are read. Further resources and locations are shown by their ids. */
const maxNames = 100;

/** uris is the system of identifiers that are URIs, such as urn:uuid:0198c4f2-7d1e-7c3a-9b5f-000000000003. */
const uris = 'urn:ietf:rfc:3986';
const uuidUri = 'urn:uuid:';

function uuidsOf(record: Json): string[] {
  const values: string[] = (record.identifier ?? []).filter((i: Json) => i.system === uris).map((i: Json) => i.value ?? '');
  return values.filter((value) => value.startsWith(uuidUri)).map((value) => value.slice(uuidUri.length));
}

/** namesOf returns the names of the records that UUIDs of slots stand for. A record has the UUID as its id, or else as an identifier. */
export async function namesOf(client: Client, uuids: string[]): Promise<Map<string, string>> {
  const names = new Map<string, string>();
  const limited = uuids.slice(0, maxNames);
  const read = async (parameter: string, valueOf: (uuid: string) => string, keysOf: (record: Json) => string[]) => {
    const missing = limited.filter((uuid) => !names.has(uuid.toLowerCase()));
    if (missing.length === 0) return;
    const query = new URLSearchParams({ [parameter]: missing.map(valueOf).join(','), _count: String(maxNames) });
    const wanted = new Set(missing.map((uuid) => uuid.toLowerCase()));
    const found = await batch(client, bookable.map((type) => `${type}?${query}`));
    for (const { resource } of found.flatMap((bundle) => bundle?.entry ?? [])) {
      for (const key of keysOf(resource).map((uuid) => uuid.toLowerCase())) if (wanted.has(key)) names.set(key, titleOf(resource));
    }
  };
  await read('_id', (uuid) => uuid, (record) => [record.id ?? '']);
  await read('identifier', (uuid) => `${uris}|${uuidUri}${uuid}`, uuidsOf);
  return names;
}

/** byDay groups slots by the day on which they begin in a zone, in the order of time. */
export function byDay(slots: Slot[], zone: string): Map<string, Slot[]> {
  const days = new Map<string, Slot[]>();
  for (const slot of [...slots].sort((a, b) => Date.parse(a.startAt) - Date.parse(b.startAt))) {
    const day = dayIn(slot.startAt, zone);
    days.set(day, [...(days.get(day) ?? []), slot]);
  }
  return days;
}
