import { afterEach, describe, expect, it, vi } from 'vitest';
import { ageOf, born } from '../src/fhir/age';
import { addDays, clock, dateTime, dayIn, instant, isDay, mondayOf, startOf } from '../src/dates';
import { diff } from '../src/diff';
import { csv } from '../src/csv';
import { placeOf } from '../src/place';
import { Client } from '../src/api/client';
import { errorOf } from '../src/api/errors';
import { expiryOf, renewalIn } from '../src/api/expiry';
import { exists } from '../src/pages';
import { labelOf, localRecord, referencesOf } from '../src/fhir/references';
import { byDay, namesOf, stateOf, type Slot } from '../src/pages/slots';
import { replayed } from '../src/pages/deliveries';
import { loadWebhooks, summaryOf, type Delivery } from '../src/pages/webhooks';
import { stateOfCondition } from '../src/pages/conditions';
import { met, minutes, percentile, requestsBy, size, type Requests } from '../src/pages/usage';
import { readMetadata } from '../src/metadata';
import { animalOf, contacts, ownersOf, titleOf } from '../src/fhir/display';

describe('born', () => {
  const now = new Date(2026, 2, 15);
  it.each([
    ['2020-03-16', undefined, '2020-03-16 (5 years)'],
    ['2026-03-16', undefined, '2026-03-16 (in the future)'],
    ['2027', undefined, '2027 (in the future)'],
    ['2020-03-16', '2019', '2020-03-16'],
    ['soon', undefined, 'soon'],
  ])('%s, died %s', (birth, died, want) => expect(born(birth, now, died)).toBe(want));
});

describe('diff', () => {
  it.each([
    ['equal values in another order', { a: 1, b: { c: 2, d: 3 } }, { b: { d: 3, c: 2 }, a: 1 }, []],
    ['a changed element', { gender: 'male' }, { gender: 'female' }, [{ path: 'gender', kind: 'changed', before: 'male', after: 'female' }]],
    ['an added element', {}, { birthDate: '2020' }, [{ path: 'birthDate', kind: 'added', after: '2020' }]],
    ['a removed element', { active: true }, {}, [{ path: 'active', kind: 'removed', before: true }]],
    ['an element within a list', { name: [{ given: ['Rex'] }] }, { name: [{ given: ['Rexi'] }] }, [
      { path: 'name[0].given[0]', kind: 'changed', before: 'Rex', after: 'Rexi' },
    ]],
    ['an item before others', { line: ['b', 'c'] }, { line: ['a', 'b', 'c'] }, [{ path: 'line[0]', kind: 'added', after: 'a' }]],
    ['items in another order', { line: ['a', 'b'] }, { line: ['b', 'a'] }, [{ path: 'line[1]', kind: 'moved', before: 0, after: 1 }]],
    [
      'an extension that is found by its url',
      { extension: [{ url: 'u', valueString: 'x' }] },
      { extension: [{ url: 'v', valueString: 'y' }, { url: 'u', valueString: 'z' }] },
      [{ path: 'extension[0]', kind: 'added', after: { url: 'v', valueString: 'y' } }, { path: 'extension[1].valueString', kind: 'changed', before: 'x', after: 'z' }],
    ],
    ['another kind of value', { a: [1] }, { a: { b: 1 } }, [{ path: 'a', kind: 'changed', before: [1], after: { b: 1 } }]],
    ['null against an absent element', { a: null }, {}, [{ path: 'a', kind: 'removed', before: null }]],
  ])('shows %s', (_, before, after, want) => expect(diff(before, after)).toEqual(want));
});

describe('ageOf', () => {
  const now = new Date(2026, 2, 15);
  it.each([
    ['2026-03-15', '0 days'],
    ['2026-03-14', '1 day'],
    ['2026-02-01', '42 days'],
    ['2026-01-15', '2 months'],
    ['2024-03-16', '23 months'],
    ['2024-03-15', '2 years'],
    ['2020-03-16', '5 years'],
    ['2020-06', 'about 5 years'],
    ['2020', 'about 6 years'],
    ['2026-03-16', ''],
    ['soon', ''],
    [undefined, ''],
  ])('of %s', (birth, want) => expect(ageOf(birth, now)).toBe(want));
  it.each([
    ['2010-01-01', '2015-06-01', '5 years'],
    ['2024-03-03', '2024-05-03', '2 months'],
    ['2024-03-03', '2024-05-03T23:30:00-11:00', '2 months'],
    ['2024-03-03', '2024-05', 'about 2 months'],
    ['2010-05-01', '2024', 'about 14 years'],
    ['2010', '2024-05-03', 'about 14 years'],
    ['2024-06', '2024-05', ''],
    ['2010-01-01', 'unknown', '16 years'],
  ])('of %s ends with the death %s', (birth, death, want) => {
    vi.stubEnv('TZ', 'America/New_York');
    expect(ageOf(birth, now, death)).toBe(want);
  });
});

describe('dates', () => {
  it.each([
    ['2026-03-02', '2026-03-02'],
    ['2026-03-08', '2026-03-02'],
    ['2026-01-01', '2025-12-29'],
  ])('the Monday of %s', (day, want) => expect(mondayOf(day)).toBe(want));
  it.each([
    ['2026-02-28', true],
    ['2028-02-29', true],
    ['2026-02-29', false],
    ['2026-99-99', false],
    ['2026-3-1', false],
    ['0000-01-01', false],
    ['9999-12-31', false],
    ['+012026-01-01', false],
    ['', false],
  ])('%s is a day: %s', (text, want) => expect(isDay(text)).toBe(want));
  it('adds days across months and leap days', () => expect(addDays('2028-02-28', 2)).toBe('2028-03-01'));
  it.each([
    ['2026-01-10', 'Europe/Vienna', '2026-01-09T23:00:00.000Z'],
    ['2026-07-10', 'Europe/Vienna', '2026-07-09T22:00:00.000Z'],
    ['2026-03-29', 'Europe/Vienna', '2026-03-28T23:00:00.000Z'],
    ['2026-03-30', 'Europe/Vienna', '2026-03-29T22:00:00.000Z'],
    ['2026-03-01', 'Asia/Kathmandu', '2026-02-28T18:15:00.000Z'],
    ['2026-03-01', 'America/Los_Angeles', '2026-03-01T08:00:00.000Z'],
    ['2026-04-24', 'Africa/Cairo', '2026-04-23T22:00:00.000Z'],
    ['2026-03-29', 'Atlantic/Azores', '2026-03-29T01:00:00.000Z'],
    ['2026-03-29', 'America/Nuuk', '2026-03-29T01:00:00.000Z'],
    ['2026-09-06', 'America/Santiago', '2026-09-06T04:00:00.000Z'],
    ['2026-04-05', 'America/Santiago', '2026-04-05T04:00:00.000Z'],
    ['2026-11-01', 'America/Havana', '2026-11-01T04:00:00.000Z'],
  ])('%s begins in %s', (day, zone, want) => expect(startOf(day, zone).toISOString()).toBe(want));
  it.each(['2024', '2024-05', '2024-05-03'])('shows %s of FHIR, which is no moment, as it is', (value) => expect(dateTime(value, 'America/New_York')).toBe(value));
  it('shows a dateTime of FHIR with a time in a zone', () => {
    const value = '2024-05-03T02:00:00Z';
    expect(dateTime(value, 'America/New_York')).toBe(instant(value, 'America/New_York'));
    expect(dateTime(value, 'America/New_York')).not.toBe(dateTime(value, 'Europe/Vienna'));
  });
  it('shows a moment by the clocks of a zone', () => {
    expect(clock('2026-03-01T20:00:00Z', 'Asia/Kathmandu')).toBe('01:45');
    expect(dayIn('2026-03-01T20:00:00Z', 'Asia/Kathmandu')).toBe('2026-03-02');
  });
});

describe('csv', () => {
  it('quotes what needs it, and defuses formulas', () =>
    expect(csv([['a', 'b,c'], ['say "hi"', '=1+1']])).toBe('a,"b,c"\r\n"say ""hi""",\'=1+1\r\n'));
});

describe('placeOf', () => {
  it.each([
    ['/console', { siteId: '', base: '/console', path: '/' }],
    ['/site/oak/console', { siteId: 'oak', base: '/site/oak/console', path: '/' }],
    ['/site/oak/console/record/Patient/rex', { siteId: 'oak', base: '/site/oak/console', path: '/record/Patient/rex' }],
    ['/site/%zz/console/', { siteId: '', base: '/console', path: '/' }],
    ['/site/console/console/', { siteId: 'console', base: '/site/console/console', path: '/' }],
  ])('%s', (path, want) => expect(placeOf(path)).toEqual(want));
});

describe('exists', () => {
  it.each([
    ['', [], true],
    ['search', [], true],
    ['search', ['Patient'], true],
    ['record', ['Patient', 'rex'], true],
    ['record', ['Patient'], false],
    ['record', ['Patient', ''], false],
    ['record', ['Patient', undefined], false],
    ['history', [], false],
    ['callback', [], true],
    ['nothing', [], false],
    ['toString', [], false],
  ])('page %s with %j: %s', (section, rest, want) => expect(exists(section, rest)).toBe(want));
});

describe('errorOf', () => {
  const outcome = (details: object) => JSON.stringify({ resourceType: 'OperationOutcome', issue: [{ severity: 'error', details, diagnostics: 'The name is missing.', expression: ['Patient.name'] }] });
  it('reads the code in the text', () => expect(errorOf(400, '', outcome({ text: 'invalid' }))).toMatchObject({ code: 'invalid', message: 'The name is missing.' }));
  it('reads the code in the coding', () =>
    expect(errorOf(400, '', outcome({ coding: [{ system: 'https://h/errors', code: 'invalid' }], text: 'It is not valid.' }))).toMatchObject({
      code: 'invalid', message: 'It is not valid. The name is missing.', page: 'https://h/errors', issues: [{ at: 'Patient.name' }],
    }));
  it('reads problem details', () =>
    expect(errorOf(409, '', JSON.stringify({ code: 'slot_conflict', detail: 'Taken.', conflictingSlotId: 'x', type: 'about:blank' }))).toMatchObject({
      status: 409, code: 'slot_conflict', message: 'Taken.', conflictingSlotId: 'x', page: undefined,
    }));
  it('reads what is no JSON', () => expect(errorOf(502, 'Bad Gateway', '<html>')).toMatchObject({ message: 'The server answered 502 Bad Gateway.' }));
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('Client', () => {
  it('sends a token until the session ends', async () => {
    const sent: (string | null)[] = [];
    vi.stubGlobal('fetch', async (_: string, { headers }: { headers: Headers }) => {
      sent.push(headers.get('Authorization'));
      return new Response('{}');
    });
    const client = new Client('oak');
    client.use('secret');
    client.holds.set('slot', 'hold');
    await client.fhir('/metadata');
    client.forget();
    await client.fhir('/metadata');
    expect(sent).toEqual(['Bearer secret', null]);
    expect(client.holds.size).toBe(0);
  });
});

describe('a request', () => {
  /** waiting answers when it is aborted. */
  const waiting = (_: string, { signal }: RequestInit) =>
    new Promise((_resolve, reject) => {
      if (signal!.aborted) reject(signal!.reason);
      signal!.addEventListener('abort', () => reject(signal!.reason));
    });
  it('is aborted when the session ends', async () => {
    vi.stubGlobal('fetch', waiting);
    const client = new Client('oak');
    const request = client.fhir('/metadata');
    client.forget();
    await expect(request).rejects.toMatchObject({ name: 'AbortError' });
    expect(client.timings).toEqual([]);
  });
  it('fails if it takes too long', async () => {
    vi.stubGlobal('fetch', waiting);
    vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort());
    await expect(new Client('oak').fhir('/metadata')).rejects.toMatchObject({ status: 0, code: 'timeout' });
    expect(AbortSignal.timeout).toHaveBeenCalledWith(120_000);
  });
});

describe('replayed', () => {
  it.each([
    [0, 0, '0 deliveries are sent again.'],
    [1, 2, '1 delivery is sent again. 2 deliveries are not, because the content is no longer stored.'],
    [3, 1, '3 deliveries are sent again. 1 delivery is not, because the content is no longer stored.'],
  ])('says that %d were sent and %d skipped', (count, skipped, want) => expect(replayed(count, skipped)).toBe(want));
});

describe('expiryOf', () => {
  it('reads the claim exp', () => expect(expiryOf(`x.${btoa(JSON.stringify({ exp: 1700000000 }))}.y`)).toBe(1700000000000));
  it.each(['', 'opaque', 'a.b.c', `x.${btoa('{}')}.y`])('%s has none', (token) => expect(expiryOf(token)).toBeUndefined());
});

describe('renewalIn', () => {
  it.each([
    [3_600_000, 3_540_000],
    [120_000, 60_000],
    [90_000, 45_000],
    [60_000, 30_000],
    [1_000, 5_000],
    [0, 5_000],
    [-60_000, 5_000],
  ])('a token with %d ms left is renewed in %d ms', (left, want) => expect(renewalIn(left)).toBe(want));
});

describe('records', () => {
  const rex = {
    resourceType: 'Patient', id: 'rex', name: [{ given: ['Rex'], family: 'Miller' }], generalPractitioner: [{ reference: 'Practitioner/ann', display: 'Ann' }],
    extension: [{ url: 'http://hl7.org/fhir/StructureDefinition/patient-animal', extension: [
      { url: 'species', valueCodeableConcept: { coding: [{ code: 'canislf', display: 'Dog' }] } },
      { url: 'genderStatus', valueCodeableConcept: { text: 'neutered' } },
    ] }],
  };
  it('have names', () => {
    expect(titleOf(rex)).toBe('Rex Miller');
    expect(titleOf({ resourceType: 'Location', id: '1', name: 'Room 1' })).toBe('Room 1');
    expect(titleOf({ resourceType: 'Person', id: '1' })).toBe('Person/1');
  });
  it('are animals', () => expect(animalOf(rex)).toEqual({ species: 'Dog', breed: '', genderStatus: 'neutered' }));
  it('have contacts', () => {
    expect(contacts({ telecom: [{ system: 'phone', use: 'home' }, { value: '1', use: 'work' }, { value: 'a@b' }] })).toBe('1 (work), a@b');
    expect(contacts({})).toBe('');
  });
  it('have owners', () => expect(ownersOf(rex, [{ resourceType: 'RelatedPerson', patient: { reference: 'Patient/rex' }, name: [{ text: 'Mo' }] }])).toBe('Mo'));
  it('refer to others', () => expect(referencesOf(rex)).toEqual([{ path: 'generalPractitioner[0]', reference: 'Practitioner/ann', display: 'Ann' }]));
  it.each([
    ['Patient/rex', { type: 'Patient', id: 'rex' }],
    ['https://h/site/a/fhir/Patient/rex/_history/3', { type: 'Patient', id: 'rex' }],
    ['https://other/Patient/rex', undefined],
    ['#contained', undefined],
    ['urn:uuid:1', undefined],
  ])('%s is a record of the site', (reference, want) => expect(localRecord(reference, 'https://h/site/a/fhir')).toEqual(want));
});

describe('slots', () => {
  const slot = (startAt: string, more: Partial<Slot> = {}): Slot => ({
    availabilitySlotId: startAt, startAt, endAt: startAt, locationId: 'l', resourceId: 'r', isActive: true, isBooked: false, ...more,
  });
  const now = Date.parse('2026-03-01T12:00:00Z');
  it.each([
    [{}, 'free'],
    [{ heldUntil: '2026-03-01T12:00:01Z' }, 'held'],
    [{ heldUntil: '2026-03-01T11:59:59Z' }, 'free'],
    [{ isBooked: true, heldUntil: '2026-03-01T12:00:01Z' }, 'booked'],
    [{ isActive: false, isBooked: true }, 'inactive'],
  ])('%j is %s', (more, want) => expect(stateOf(slot('2026-03-01T13:00:00Z', more), now)).toBe(want));
  it('are grouped by the day in a zone, in the order of time', () => {
    const slots = [slot('2026-03-01T23:30:00Z'), slot('2026-03-01T22:30:00Z'), slot('2026-03-02T00:45:00+01:00')];
    expect([...byDay(slots, 'Europe/Vienna')].map(([day, of]) => [day, of.map((s) => s.startAt)])).toEqual([
      ['2026-03-01', ['2026-03-01T22:30:00Z']],
      ['2026-03-02', ['2026-03-01T23:30:00Z', '2026-03-02T00:45:00+01:00']],
    ]);
  });
  it('have the names of records with their UUIDs as ids, else as identifiers', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((letter) => `0198c4f2-7d1e-7c3a-9b5f-00000000000${letter}`);
    const uri = (uuid: string) => ({ system: 'urn:ietf:rfc:3986', value: `urn:uuid:${uuid}` });
    const records = [
      { resourceType: 'Practitioner', id: a, name: [{ text: 'Ann' }] },
      { resourceType: 'Practitioner', id: 'ben', name: [{ text: 'Ben' }], identifier: [{ system: 'tel', value: '1' }, uri(a!), uri(b!)] },
    ];
    const asked: string[] = [];
    /** searched returns what a search of Practitioner finds, and nothing for the other types. */
    const searched = (url: URL) => {
      if (url.pathname !== '/Practitioner') return { response: { status: '404 Not Found' } };
      const [[parameter, values]] = [...url.searchParams] as [[string, string]];
      asked.push(`${parameter}=${values}`);
      const keysOf = (r: (typeof records)[number]) => (parameter === '_id' ? [r.id] : (r.identifier ?? []).map((i) => `${i.system}|${i.value}`));
      const found = records.filter((r) => values.split(',').some((value) => keysOf(r).includes(value)));
      return { response: { status: '200 OK' }, resource: { entry: found.map((resource) => ({ resource })) } };
    };
    vi.stubGlobal('fetch', async (_: string, { body }: { body: string }) => {
      const urls: string[] = JSON.parse(body).entry.map((e: { request: { url: string } }) => e.request.url);
      return new Response(JSON.stringify({ entry: urls.map((url) => searched(new URL(url, 'https://h/'))) }));
    });
    expect([...(await namesOf(new Client('oak'), [a!, b!, c!]))]).toEqual([[a, 'Ann'], [b, 'Ben']]);
    const many = Array.from({ length: 101 }, (_, i) => `${i}`);
    expect(asked.splice(0)).toEqual([`_id=${a},${b},${c}`, `identifier=urn:ietf:rfc:3986|urn:uuid:${b},urn:ietf:rfc:3986|urn:uuid:${c}`]);
    await namesOf(new Client('oak'), many);
    const first = many.slice(0, 100);
    expect(asked).toEqual([`_id=${first}`, `identifier=${first.map((uuid) => `urn:ietf:rfc:3986|urn:uuid:${uuid}`)}`]);
  });
});

describe('summaryOf', () => {
  const delivery = (...attempts: [string, string][]) => ({ attempts: attempts.map(([at, reason]) => ({ at, reason })) }) as Delivery;
  it.each([
    ['nothing was sent', [], {}],
    ['all is well', [delivery(['2026-01-02', 'delivered'])], { lastSuccess: '2026-01-02' }],
    ['it fails', [delivery(['2026-01-03', 'timeout'], ['2026-01-04', 'status']), delivery(['2026-01-02', 'delivered'])], { lastSuccess: '2026-01-02', failingSince: '2026-01-03' }],
    ['a retry succeeded', [delivery(['2026-01-03', 'timeout'], ['2026-01-04', 'delivered'])], { lastSuccess: '2026-01-04' }],
    ['it never succeeded', [delivery(['2026-01-03', 'timeout'])], { failingSince: '2026-01-03' }],
  ])('says that %s', (_, deliveries, want) => expect(summaryOf(deliveries)).toEqual(want));
});

describe('loadWebhooks', () => {
  it('reads a page, and how many webhooks there are in all', async () => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(url.replace('/site/oak/ahds/v1', ''));
      return new Response(JSON.stringify(url.includes('/delivery') ? { data: [], meta: { total: 3 } } : { data: [{ webhookId: 'a' }], meta: { total: 26, totalPages: 2 } }));
    });
    expect(await loadWebhooks(new Client('oak'), 1)).toEqual({ list: [{ hook: { webhookId: 'a' }, pending: 3 }], total: 26, pages: 2 });
    expect(asked[0]).toBe('/webhook?pageSize=25&page=1&sortBy=createdAt&sortOrder=desc');
  });
  it('leaves out a webhook that is deleted meanwhile', async () => {
    vi.stubGlobal('fetch', async (url: string) => {
      if (url.includes('/b/delivery')) return new Response('{}', { status: 404 });
      return new Response(JSON.stringify(url.includes('/delivery') ? { data: [], meta: { total: 0 } } : { data: [{ webhookId: 'a' }, { webhookId: 'b' }], meta: { total: 2, totalPages: 1 } }));
    });
    expect((await loadWebhooks(new Client('oak'), 0)).list).toEqual([{ hook: { webhookId: 'a' }, pending: 0 }]);
  });
});

describe('readMetadata', () => {
  it('reads types, parameters and the zone', () =>
    expect(readMetadata({
      implementation: { url: 'https://h/fhir', extension: [{ url: 'http://hl7.org/fhir/StructureDefinition/timezone', valueCode: 'Europe/Vienna' }] },
      rest: [{ security: { service: [] }, searchParam: [{ name: '_id', type: 'token' }], resource: [
        { type: 'Patient', searchParam: [{ name: 'name', type: 'string' }], searchRevInclude: ['RelatedPerson:patient', 'Group:*', '*'] }, { type: 'AuditEvent' },
      ] }],
    })).toEqual({
      baseUrl: 'https://h/fhir', zone: 'Europe/Vienna', version: '', hasIssuers: true,
      types: [{ type: 'Patient', parameters: [{ name: '_id', type: 'token' }, { name: 'name', type: 'string' }], referredBy: [{ type: 'RelatedPerson', parameter: 'patient' }] }],
    }));
});

describe('labelOf', () => {
  it.each([
    ['generalPractitioner[0]', 'General practitioner'],
    ['qualification[1].issuer', 'Qualification, issuer'],
  ])('%s', (path, want) => expect(labelOf(path)).toBe(want));
});

describe('stateOfCondition', () => {
  it.each([
    ['Ready', 'True', 'good'],
    ['Ready', 'False', 'bad'],
    ['Ready', 'Unknown', 'waiting'],
    ['Stalled', 'False', 'good'],
    ['StorageNearLimit', 'True', 'bad'],
    ['Reconciling', 'True', 'waiting'],
    ['Reconciling', 'False', 'good'],
  ] as const)('%s %s', (type, status, want) => {
    expect(stateOfCondition({ type, status, reason: '', message: '', changedAt: '' })).toBe(want);
  });
});

describe('usage', () => {
  const now = Date.parse('2026-03-15T10:30:45Z');
  const bounds = [10, 100];
  const server = (name: string, since: string, ...samples: [string, number, number[]][]): Requests => ({
    server: name, since, stepSeconds: 60, boundsMs: bounds,
    samples: samples.map(([at, requests, durations]) => ({ at, requests, clientErrors: 1, serverErrors: 0, durations })),
  });

  it('has the last sixty minutes', () => {
    const all = minutes(now);
    expect(all.length).toBe(60);
    expect(new Date(all[59]!).toISOString()).toBe('2026-03-15T10:30:00.000Z');
    expect(new Date(all[0]!).toISOString()).toBe('2026-03-15T09:31:00.000Z');
  });

  it('sums up what API servers counted, each once', () => {
    const a = server('a', '2026-03-15T08:00:00.000Z', ['2026-03-15T10:30:00.000Z', 2, [2, 0, 0]], ['2026-03-15T09:00:00.000Z', 9, [9, 0, 0]]);
    const b = server('b', '2026-03-15T09:00:00.000Z', ['2026-03-15T10:30:00.000Z', 2, [0, 2, 0]]);
    const later = server('a', '2026-03-15T08:00:00.000Z', ['2026-03-15T10:30:00.000Z', 4, [4, 0, 0]]);
    const all = requestsBy(met(met(met([], a), b), later), now);
    expect(all[59]).toEqual({ at: Date.parse('2026-03-15T10:30:00Z'), requests: 6, clientErrors: 2, serverErrors: 0, median: 7.5, slow: expect.closeTo(86.5) });
    expect(all.slice(0, 59).every((m) => m.requests === 0 && m.median === undefined)).toBe(true);
    expect(met(met([], a), server('a', '2026-03-15T10:00:00.000Z')).length).toBe(2); // it was started again
  });

  it.each([
    [[4, 0, 0], 0.5, 5],
    [[2, 2, 0], 0.5, 10],
    [[2, 2, 0], 0.75, 55],
    [[0, 0, 3], 0.5, 100],
    [[0, 0, 0], 0.5, undefined],
  ])('finds a percentile of %j', (durations, share, want) => expect(percentile(durations, bounds, share)).toBe(want));

  it.each([
    [0, 0, 'bytes'],
    [512, 512, 'bytes'],
    [1536, 1.5, 'KiB'],
    [20 * 1024 * 1024, 20, 'MiB'],
  ])('shows a size of %d bytes', (bytes, amount, unit) => expect(size(bytes)).toBe(`${amount.toLocaleString()} ${unit}`));
});
