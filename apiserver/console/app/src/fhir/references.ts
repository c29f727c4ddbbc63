// References between records.

import type { Json } from '../api/errors';

export interface Reference {
  /** path is the element with the reference, such as generalPractitioner[0]. */
  path: string;
  reference: string;
  display?: string;
}

/** referencesOf returns all literal references in a resource. */
export function referencesOf(resource: Json): Reference[] {
  const found: Reference[] = [];
  const visit = (value: Json, path: string) => {
    if (Array.isArray(value)) {
      value.forEach((item, i) => visit(item, `${path}[${i}]`));
    } else if (value && typeof value === 'object') {
      if (typeof value.reference === 'string') found.push({ path, reference: value.reference, display: value.display });
      for (const [name, member] of Object.entries(value)) visit(member, path ? `${path}.${name}` : name);
    }
  };
  visit(resource, '');
  return found;
}

/** labelOf returns a path in words: generalPractitioner[0] is General practitioner. */
export function labelOf(path: string): string {
  const words = path.replace(/\[\d+\]/g, '').replace(/\./g, ', ').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** localRecord returns type and id of a reference to a record of the site, or undefined. */
export function localRecord(reference: string, base: string): { type: string; id: string } | undefined {
  const relative = reference.startsWith(`${base}/`) ? reference.slice(base.length + 1) : reference;
  const match = /^([A-Z][A-Za-z]+)\/([A-Za-z0-9.-]{1,64})(?:\/_history\/[^/]+)?$/.exec(relative);
  return match ? { type: match[1]!, id: match[2]! } : undefined;
}
