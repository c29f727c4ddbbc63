// A series of slots, from opening hours.

import { useState } from 'preact/hooks';
import { addDays } from '../dates';
import { useSite } from '../site';
import { useAction } from '../ui/action';
import { announce } from '../ui/announce';
import { Dialog } from '../ui/dialog';
import { Failure } from '../ui/load';
import type { Week } from './slots';

const weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];

interface Props {
  week: Week;
  monday: string;
  onClose: () => void;
  onCreated: () => void;
}

export function Series({ week, monday, onClose, onCreated }: Props) {
  const { client, metadata } = useSite();
  const [days, setDays] = useState(weekdays.slice(0, 5));
  const { busy, error, act } = useAction(async (form: FormData) => {
    const text = (name: string) => String(form.get(name) ?? '').trim();
    const schedule = {
      from: text('from'),
      to: text('to'),
      durationMinutes: Number(text('duration')),
      openingHours: [{ days, opensAt: text('opens'), closesAt: text('closes') }],
      resourceId: text('resource'),
      locationId: text('location'),
    };
    const { created, existing } = (await client.ahds('/availability-slot/generate', { method: 'POST', body: JSON.stringify(schedule) })).json.meta;
    announce(`${created} slots were created, ${existing} existed already.`);
    onCreated();
    return onClose;
  });
  return (
    <Dialog title="Create a series of slots" onClose={onClose}>
      <form
        class="signin"
        onSubmit={(event) => {
          event.preventDefault();
          void act(new FormData(event.currentTarget));
        }}
      >
        <div class="pair">
          <label>
            From
            <input type="date" name="from" required defaultValue={monday} />
          </label>
          <label>
            To
            <input type="date" name="to" required defaultValue={addDays(monday, 6)} />
          </label>
        </div>
        <fieldset>
          <legend>Days</legend>
          <div class="buttons">
            {weekdays.map((day) => (
              <label class="inline">
                <input type="checkbox" checked={days.includes(day)} onChange={() => setDays(weekdays.filter((d) => (d === day) !== days.includes(d)))} />
                {day.slice(0, 3)}
              </label>
            ))}
          </div>
        </fieldset>
        <div class="pair">
          <label>
            Opens, in {metadata.zone}
            <input type="time" name="opens" required defaultValue="09:00" />
          </label>
          <label>
            Closes
            <input type="time" name="closes" required defaultValue="12:00" />
          </label>
          <label>
            Minutes of a slot
            <input type="number" name="duration" required min={5} max={1440} defaultValue={30} />
          </label>
        </div>
        <Id name="resource" title="Resource" ids={week.slots.map((s) => s.resourceId)} names={week.names} />
        <Id name="location" title="Location" ids={week.slots.map((s) => s.locationId)} names={week.names} />
        {error !== undefined && <Failure error={error} />}
        <button class="primary" aria-disabled={busy} disabled={days.length === 0}>
          Create the slots
        </button>
      </form>
    </Dialog>
  );
}

/** Id is a field for an id, which completes those of the week. */
function Id({ name, title, ids, names }: { name: string; title: string; ids: string[]; names: Map<string, string> }) {
  const known = [...new Set(ids)];
  return (
    <label>
      {title} (a UUID)
      <input name={name} required list={`${name}-ids`} defaultValue={known[0] ?? ''} spellcheck={false} autocomplete="off" />
      <datalist id={`${name}-ids`}>
        {known.map((id) => (
          <option value={id}>{names.get(id.toLowerCase()) ?? id}</option>
        ))}
      </datalist>
    </label>
  );
}
