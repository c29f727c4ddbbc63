// Slots of a week, and the resources that they belong to.

import { batch, type Client } from '../api/client';
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

async function namesOf(client: Client, ids: string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map();
  const some = ids.slice(0, 100).join(',');
  const found = await batch(client, bookable.map((type) => `${type}?_id=${some}&_count=100`));
  const records = found.flatMap((bundle) => bundle?.entry ?? []).map((entry) => entry.resource);
  return new Map(records.map((r) => [r.id.toLowerCase(), titleOf(r)]));
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
