// Ages of animals. A birth date of FHIR is a day, a month or a year, and so is a date of death without a time.

interface Day {
  year: number;
  /** month and day count from 1, and are undefined where the date does not say them. */
  month?: number | undefined;
  day?: number | undefined;
}

/** dayOf returns the day of a date or dateTime as it is written, so that no time zone moves it. */
function dayOf(value: string | undefined): Day | undefined {
  const match = /^(\d{4})(?:-(\d{2})(?:-(\d{2})(?:T.*)?)?)?$/.exec(value ?? '');
  return match ? { year: Number(match[1]), month: match[2] ? Number(match[2]) : undefined, day: match[3] ? Number(match[3]) : undefined } : undefined;
}

/** ageOf returns the age at a moment, or at death: in years, in months below two years, in days below two months. */
export function ageOf(birthDate: string | undefined, now: Date, deceased?: string): string {
  const birth = dayOf(birthDate);
  if (!birth) return '';
  const end = dayOf(deceased) ?? { year: now.getFullYear(), month: now.getMonth() + 1, day: now.getDate() };
  const years = end.year - birth.year;
  if (!birth.month || !end.month) return years < 0 ? '' : `about ${count(years, 'year')}`;
  const exact = birth.day !== undefined && end.day !== undefined;
  const about = exact ? '' : 'about ';
  const months = years * 12 + end.month - birth.month - (exact && end.day! < birth.day! ? 1 : 0);
  if (months < 0) return '';
  if (months >= 24) return about + count(Math.floor(months / 12), 'year');
  if (months >= 2 || !exact) return about + count(months, 'month');
  return count((Date.UTC(end.year, end.month - 1, end.day) - Date.UTC(birth.year, birth.month - 1, birth.day)) / 86_400_000, 'day');
}

/** born shows a birth date with the age, or that the date is in the future. */
export function born(birthDate: string, now: Date, deceased?: string): string {
  const age = ageOf(birthDate, now, deceased) || (dayOf(birthDate) && !ageOf(birthDate, now) ? 'in the future' : '');
  return age ? `${birthDate} (${age})` : birthDate;
}

function count(n: number, unit: string): string {
  return `${n} ${unit}${n === 1 ? '' : 's'}`;
}
