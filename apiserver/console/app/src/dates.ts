// Dates and times in a time zone. A day is written as 2026-03-01.

/** instant shows a moment in the viewer's locale, with the zone. */
export function instant(value: string | number | undefined, zone?: string): string {
  if (value === undefined || value === '') return '';
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return String(value);
  return at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long', timeZone: zone });
}

/** dateTime shows a dateTime of FHIR. One without a time is a year, a month or a day in any zone, and is shown as it is. */
export function dateTime(value: string, zone: string): string {
  return value.includes('T') ? instant(value, zone) : value;
}

/** clock shows the time of day in a zone, such as 09:30. */
export function clock(value: string | number | Date, zone: string): string {
  return new Date(value).toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', timeZone: zone });
}

/** dayIn returns the day of a moment in a zone. */
export function dayIn(value: string | number | Date, zone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).formatToParts(new Date(value));
  const part = (type: string) => parts.find((p) => p.type === type)?.value ?? '';
  return `${part('year')}-${part('month')}-${part('day')}`;
}

/** isDay reports whether text is a calendar day in the years 1000 to 9998. The limits keep the years of adjacent weeks at four digits. */
export function isDay(text: string): boolean {
  const at = /^[1-9]\d{3}-\d{2}-\d{2}$/.test(text) && !text.startsWith('9999') ? Date.parse(`${text}T00:00:00Z`) : NaN;
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text); // 30 February would become 2 March
}

/** addDays returns the day that many days later. */
export function addDays(day: string, days: number): string {
  const at = new Date(`${day}T00:00:00Z`);
  at.setUTCDate(at.getUTCDate() + days);
  return at.toISOString().slice(0, 10);
}

/** mondayOf returns the Monday of a day's week. */
export function mondayOf(day: string): string {
  const weekday = new Date(`${day}T00:00:00Z`).getUTCDay();
  return addDays(day, -((weekday + 6) % 7));
}

/** startOf returns the moment at which a day begins in a zone. Clocks may change at midnight. */
export function startOf(day: string, zone: string): Date {
  const utc = Date.parse(`${day}T00:00:00Z`);
  // The offset at the result may differ from that at the first guess, so it is computed twice. If the clocks skip
  // midnight, the second result can be on the day before, and the first guess is the moment of the change.
  const guess = utc - offsetAt(utc, zone);
  const at = utc - offsetAt(guess, zone);
  return new Date(dayIn(at, zone) < day ? guess : at);
}

/** offsetAt returns how many milliseconds the clocks of a zone are ahead of UTC at a moment. */
function offsetAt(at: number, zone: string): number {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone, hourCycle: 'h23', year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', minute: '2-digit', second: '2-digit',
  }).formatToParts(new Date(at));
  const part = (type: string) => Number(parts.find((p) => p.type === type)?.value);
  const shown = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'));
  return shown - Math.floor(at / 1000) * 1000;
}

/** dayName shows a day in the viewer's locale, such as Mon 2 Mar. */
export function dayName(day: string): string {
  return new Date(`${day}T00:00:00Z`).toLocaleDateString(undefined, { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });
}

/** viewerZone is the time zone of the browser. */
export const viewerZone: string = Intl.DateTimeFormat().resolvedOptions().timeZone;
