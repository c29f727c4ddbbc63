// A week of slots, by day, with the bookings of each.

import { useState } from 'preact/hooks';
import { ApiError } from '../api/errors';
import { addDays, clock, dayIn, dayName, isDay, mondayOf, viewerZone } from '../dates';
import { go } from '../router';
import { useSite } from '../site';
import { useAction } from '../ui/action';
import { announce } from '../ui/announce';
import { Copyable } from '../ui/copy';
import { Dialog } from '../ui/dialog';
import { Empty, Failure, useLoad, View } from '../ui/load';
import { Series } from './series';
import { byDay, loadWeek, stateOf, type Slot, type State, type Week } from './slots';
import type { PageProps } from './index';

const labels: Record<State, string> = { free: 'Free', held: 'Held', booked: 'Booked', inactive: 'Inactive' };
/** symbols tell states apart without colour. */
const symbols: Record<State, string> = { free: '○', held: '◐', booked: '●', inactive: '✕' };

export default function WeekPage({ route }: PageProps) {
  const { client, metadata } = useSite();
  const ownZone = route.query.get('zone') === 'mine';
  const zone = ownZone ? viewerZone : metadata.zone;
  const asked = route.query.get('week') ?? '';
  const monday = mondayOf(isDay(asked) ? asked : dayIn(Date.now(), zone));
  const resource = route.query.get('resource') ?? '';
  const [creating, setCreating] = useState(false);
  const week = useLoad(() => loadWeek(client, monday, zone), [client, monday, zone]);
  const show = (changes: Record<string, string>) => {
    const query = new URLSearchParams(route.query);
    for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
    go('/week', query);
  };
  const names = week.data?.names ?? new Map<string, string>();
  const resources = [...new Set(week.data?.slots.map((s) => s.resourceId) ?? [])];
  return (
    <>
      <div class="toolbar">
        <h1>
          Week of {dayName(monday)} {monday.slice(0, 4)}
        </h1>
        <div class="buttons">
          <button onClick={() => show({ week: addDays(monday, -7) })}>Previous week</button>
          <button onClick={() => show({ week: '' })}>This week</button>
          <button onClick={() => show({ week: addDays(monday, 7) })}>Next week</button>
          <button disabled={!week.data} onClick={() => setCreating(true)}>
            Create a series
          </button>
        </div>
      </div>
      <div class="search">
        <label>
          Resource
          <select data-search value={resource} onChange={(event) => show({ resource: event.currentTarget.value })}>
            <option value="">All resources</option>
            {[...new Set([...resources, ...(resource ? [resource] : [])])].map((id) => (
              <option value={id}>{nameOf(names, id)}</option>
            ))}
          </select>
        </label>
        <label>
          Times
          <select value={ownZone ? 'mine' : ''} onChange={(event) => show({ zone: event.currentTarget.value })}>
            <option value="">of the site ({metadata.zone})</option>
            <option value="mine">of this browser ({viewerZone})</option>
          </select>
        </label>
        <p class="legend quiet">
          {(Object.keys(labels) as State[]).map((state) => (
            <span>
              <span aria-hidden="true">{symbols[state]}</span> {labels[state]}
            </span>
          ))}
        </p>
      </div>
      {creating && week.data && <Series week={week.data} monday={monday} onClose={() => setCreating(false)} onCreated={week.reload} />}
      <View of={week}>{(data) => <Days week={data} monday={monday} zone={zone} resource={resource} onChanged={week.reload} />}</View>
    </>
  );
}

function nameOf(names: Map<string, string>, id: string): string {
  return names.get(id.toLowerCase()) ?? id;
}

interface DaysProps {
  week: Week;
  monday: string;
  zone: string;
  resource: string;
  onChanged: () => void;
}

function Days({ week, monday, zone, resource, onChanged }: DaysProps) {
  const [chosen, setChosen] = useState<string>();
  const slots = week.slots.filter((s) => !resource || s.resourceId === resource);
  const days = byDay(slots, zone);
  const slot = week.slots.find((s) => s.availabilitySlotId === chosen);
  const today = dayIn(Date.now(), zone);
  return (
    <>
      {week.total > week.slots.length && <p class="notice">The first {week.slots.length} of {week.total} slots of this week.</p>}
      {slots.length === 0 && <Empty>No slot this week. Slots come from <code>availability-slot</code> and <code>availability-slot/generate</code> of the AHDS API.</Empty>}
      <div class="week">
        {Array.from({ length: 7 }, (_, i) => addDays(monday, i)).map((day) => (
          <section aria-label={dayName(day)} class={day === today ? 'day today' : 'day'}>
            <h2>{dayName(day)}</h2>
            <ul class="plain">
              {(days.get(day) ?? []).map((s) => {
                const state = stateOf(s, Date.now());
                return (
                  <li key={s.availabilitySlotId}>
                    <button class={`slot ${state}`} onClick={() => setChosen(s.availabilitySlotId)} data-slot={s.availabilitySlotId}>
                      <span class="time">
                        {clock(s.startAt, zone)}–{clock(s.endAt, zone)}
                      </span>{' '}
                      <span class="what">
                        <span aria-hidden="true">{symbols[state]}</span> {labels[state]}
                      </span>{' '}
                      <span class="who">{[s.serviceType?.display ?? s.serviceType?.code, resource ? '' : nameOf(week.names, s.resourceId)].filter(Boolean).join(' · ')}</span>
                    </button>
                  </li>
                );
              })}
            </ul>
          </section>
        ))}
      </div>
      {slot && <SlotDialog slot={slot} week={week} zone={zone} onClose={() => setChosen(undefined)} onChanged={onChanged} />}
    </>
  );
}

interface SlotProps {
  slot: Slot;
  week: Week;
  zone: string;
  onClose: () => void;
  onChanged: () => void;
}

/** holdSeconds is how long a slot is held. */
const holdSeconds = 300;

function SlotDialog({ slot, week, zone, onClose, onChanged }: SlotProps) {
  const { client, metadata } = useSite();
  const id = slot.availabilitySlotId;
  const state = stateOf(slot, Date.now());
  const token = state === 'held' ? client.holds.get(id) : undefined;
  const { busy, error, act } = useAction(async (name: 'hold' | 'book' | 'release', done: string) => {
    const asked = { ...(token && { holdToken: token }), ...(name === 'hold' && { ttlSeconds: holdSeconds }) };
    try {
      const answer = (await client.ahds(`/availability-slot/${id}/${name}`, { method: 'POST', body: JSON.stringify(asked) })).json;
      if (answer.holdToken) client.holds.set(id, answer.holdToken);
      else client.holds.delete(id);
      announce(done);
      return onClose;
    } catch (problem) {
      if (problem instanceof ApiError && problem.code === 'hold_ended') client.holds.delete(id);
      throw problem;
    } finally {
      onChanged();
    }
  });
  const other = viewerZone !== zone ? viewerZone : metadata.zone !== zone ? metadata.zone : undefined;
  return (
    <Dialog title={`${dayName(dayIn(slot.startAt, zone))}, ${clock(slot.startAt, zone)}–${clock(slot.endAt, zone)}`} onClose={onClose}>
      <dl class="keys">
        <dt>State</dt>
        <dd>
          {symbols[state]} {labels[state]} {state === 'held' && <>until {clock(slot.heldUntil!, zone)}{token ? ', by you' : ''}</>}
        </dd>
        <dt>Zone</dt>
        <dd>
          {zone}
          {other && ` (${clock(slot.startAt, other)}–${clock(slot.endAt, other)} in ${other})`}
        </dd>
        <dt>Resource</dt>
        <dd>{nameOf(week.names, slot.resourceId)}</dd>
        <dt>Location</dt>
        <dd>{nameOf(week.names, slot.locationId)}</dd>
        {slot.serviceType && (
          <>
            <dt>Service</dt>
            <dd>{slot.serviceType.display ?? slot.serviceType.code}</dd>
          </>
        )}
        {slot.notes && (
          <>
            <dt>Notes</dt>
            <dd>{slot.notes}</dd>
          </>
        )}
        <dt>Id</dt>
        <dd>
          <Copyable value={id} />
        </dd>
      </dl>
      {error !== undefined && <Failure error={error} />}
      {error instanceof ApiError && error.conflictingSlotId && <Conflict id={error.conflictingSlotId} own={id} week={week} zone={zone} />}
      <div class="buttons">
        <button class="primary" aria-disabled={busy} disabled={!slot.isActive || slot.isBooked} onClick={() => act('book', 'The slot is booked.')}>
          Book
        </button>
        <button aria-disabled={busy} disabled={!slot.isActive || slot.isBooked} onClick={() => act('hold', `The slot is held for ${holdSeconds / 60} minutes.`)}>
          Hold for {holdSeconds / 60} minutes
        </button>
        <button aria-disabled={busy} disabled={state !== 'booked' && !token} onClick={() => act('release', 'The slot is free.')}>
          Release
        </button>
      </div>
    </Dialog>
  );
}

/** Conflict names the slot that has the time. */
function Conflict({ id, own, week, zone }: { id: string; own: string; week: Week; zone: string }) {
  const { client } = useSite();
  const found = useLoad(async () => (await client.ahds(`/availability-slot/${id}`)).json as Slot, [client, id]);
  if (!found.data) return null;
  const slot = found.data;
  return (
    <p class="notice">
      {id === own ? 'This slot itself was taken: ' : 'In conflict with the slot '}
      <strong>
        {dayName(dayIn(slot.startAt, zone))}, {clock(slot.startAt, zone)}–{clock(slot.endAt, zone)}
      </strong>
      , {labels[stateOf(slot, Date.now())].toLowerCase()}, {nameOf(week.names, slot.resourceId)}.
    </p>
  );
}
