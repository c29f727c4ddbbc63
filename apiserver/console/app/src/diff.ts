// The difference of two versions of a record, by element.

import type { Json } from './api/errors';

export interface Change {
  /** path is the element, such as name[0].given[1]. */
  path: string;
  kind: 'added' | 'removed' | 'changed' | 'moved';
  before?: Json;
  after?: Json;
}

/** diff returns the changes from one value to another, in the order of the elements. */
export function diff(before: Json, after: Json, path = ''): Change[] {
  if (equal(before, after)) return [];
  if (before === undefined) return [{ path, kind: 'added', after }];
  if (after === undefined) return [{ path, kind: 'removed', before }];
  if (Array.isArray(before) && Array.isArray(after)) return diffArrays(before, after, path);
  if (isObject(before) && isObject(after)) {
    const names = [...Object.keys(before), ...Object.keys(after).filter((name) => !(name in before))];
    return names.flatMap((name) => diff(before[name], after[name], path ? `${path}.${name}` : name));
  }
  return [{ path, kind: 'changed', before, after }];
}

/** diffArrays pairs the items of two arrays: equal ones first, then those with the same key, then by position. */
function diffArrays(before: Json[], after: Json[], path: string): Change[] {
  const partner = new Map<number, number>(); // of an item after, by its index
  const taken = new Set<number>();
  const pair = (same: (a: Json, b: Json, i: number, j: number) => boolean) => {
    after.forEach((item, j) => {
      if (partner.has(j)) return;
      const i = before.findIndex((other, i) => !taken.has(i) && same(other, item, i, j));
      if (i >= 0) {
        partner.set(j, i);
        taken.add(i);
      }
    });
  };
  pair((a, b, i, j) => i === j && equal(a, b));
  pair((a, b) => equal(a, b));
  pair((a, b) => keyOf(a) !== undefined && keyOf(a) === keyOf(b));
  pair((a, b, i, j) => i === j && isObject(a) === isObject(b));
  const changes: Change[] = [];
  before.forEach((item, i) => {
    if (!taken.has(i)) changes.push({ path: `${path}[${i}]`, kind: 'removed', before: item });
  });
  let last = -1;
  after.forEach((item, j) => {
    const i = partner.get(j);
    const at = `${path}[${j}]`;
    if (i === undefined) changes.push({ path: at, kind: 'added', after: item });
    else if (i < last) changes.push({ path: at, kind: 'moved', before: i, after: j }, ...diff(before[i], item, at));
    else {
      last = i;
      changes.push(...diff(before[i], item, at));
    }
  });
  return changes;
}

/** keyOf returns what identifies an item of a list in FHIR, or undefined. */
function keyOf(item: Json): string | undefined {
  if (!isObject(item)) return undefined;
  if (item.id !== undefined) return `id ${item.id}`;
  if (item.url !== undefined) return `url ${item.url}`;
  if (typeof item.reference === 'string') return `reference ${item.reference}`;
  if (item.system !== undefined && (item.value !== undefined || item.code !== undefined)) return `system ${item.system} ${item.code ?? ''} ${item.use ?? ''}`;
  return undefined;
}

function isObject(value: Json): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** equal compares JSON values; the order of members does not matter. */
function equal(a: Json, b: Json): boolean {
  if (a === b) return true;
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => equal(item, b[i]));
  if (!isObject(a) || !isObject(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => name in b && equal(a[name], b[name]));
}
