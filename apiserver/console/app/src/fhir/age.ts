// Ages of animals. A birth date of FHIR is a day, a month or a year.

/** ageOf returns the age at a moment: in years, in months below two years, in days below two months. */
export function ageOf(birthDate: string | undefined, now: Date, deceased?: string): string {
  const match = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$/.exec(birthDate ?? '');
  if (!match) return '';
  const end = deceased && !Number.isNaN(Date.parse(deceased)) ? new Date(deceased) : now;
  const year = Number(match[1]);
  if (!match[2]) {
    const years = end.getFullYear() - year;
    return years < 0 ? '' : `about ${count(years, 'year')}`;
  }
  const month = Number(match[2]) - 1;
  const day = match[3] ? Number(match[3]) : 1;
  let months = (end.getFullYear() - year) * 12 + end.getMonth() - month;
  if (end.getDate() < day) months--;
  const days = Math.floor((Date.UTC(end.getFullYear(), end.getMonth(), end.getDate()) - Date.UTC(year, month, day)) / 86_400_000);
  if (days < 0) return '';
  const about = match[3] ? '' : 'about ';
  if (months >= 24) return about + count(Math.floor(months / 12), 'year');
  if (months >= 2 || !match[3]) return about + count(Math.max(months, 0), 'month');
  return count(days, 'day');
}

function count(n: number, unit: string): string {
  return `${n} ${unit}${n === 1 ? '' : 's'}`;
}
