// Search: type and parameters, and the results as a table.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Json } from '../api/errors';
import { csv } from '../csv';
import { columnsOf, type Column } from '../fhir/display';
import { instant } from '../dates';
import { go, Link } from '../router';
import { useSite } from '../site';
import { api } from '../place';
import { announce } from '../ui/announce';
import { CopyButton } from '../ui/copy';
import { Empty, useLoad, View } from '../ui/load';
import type { TypeInfo } from '../metadata';
import { NoSuchPage, type PageProps } from './index';

type Pair = [name: string, value: string];

export default function Search({ route, rest }: PageProps) {
  const { metadata } = useSite();
  const type = metadata.types.find((t) => t.type === (rest[0] || 'Patient'));
  if (!type) return <NoSuchPage />;
  return (
    <>
      <h1>Search</h1>
      <Form shown={type} query={route.query} />
      {rest[0] ? <Results type={type} query={route.query} /> : <Empty>Choose a type and parameters, then search. Without parameters, the newest records come first.</Empty>}
    </>
  );
}

/** enteredIn returns the parameters of a query that people enter. */
const enteredIn = (query: URLSearchParams): Pair[] => [...query].filter(([name, value]) => name !== '_page_token' && name !== '_count' && value !== owners);

/** queryOf returns the query of the rows that are filled in. */
const queryOf = (rows: Pair[]) => new URLSearchParams(rows.filter(([name, value]) => name && value));

function Form({ shown, query }: { shown: TypeInfo; query: URLSearchParams }) {
  const { metadata } = useSite();
  const [chosen, setChosen] = useState(shown.type);
  const [rows, setRows] = useState<Pair[]>([['', '']]);
  const add = useRef<HTMLButtonElement>(null);
  const type = metadata.types.find((t) => t.type === chosen) ?? shown;
  const entered = enteredIn(query);
  // The address changes by this form, by the pages of results and by the Back button. The fields stay, so that
  // they keep the focus. All pages of results have the same type and parameters, so turning pages keeps what is
  // not submitted yet.
  useLayoutEffect(() => {
    setChosen(shown.type);
    if (queryOf(rows).toString() !== queryOf(entered).toString()) setRows(entered.length > 0 ? entered : [['', '']]);
  }, [shown.type, queryOf(entered).toString()]);
  const change = (i: number, pair: Pair) => setRows(rows.map((row, j) => (i === j ? pair : row)));
  const remove = (i: number) => {
    add.current?.focus(); // the button that has the focus goes with the row
    setRows(rows.filter((_, j) => j !== i));
  };
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const next = queryOf(rows);
        const count = query.get('_count');
        if (count && !next.has('_count')) next.set('_count', count);
        go(`/search/${type.type}`, next);
      }}
    >
      <label>
        Type
        <select data-search value={type.type} onChange={(event) => setChosen(event.currentTarget.value)}>
          {metadata.types.map((t) => (
            <option value={t.type}>{t.type}</option>
          ))}
        </select>
      </label>
      <datalist id="parameters">
        {type.parameters.map((p) => (
          <option value={p.name}>{p.type}</option>
        ))}
      </datalist>
      {rows.map(([name, value], i) => (
        <div class="pair">
          <label>
            Parameter
            <input list="parameters" value={name} onInput={(event) => change(i, [event.currentTarget.value, value])} autocomplete="off" spellcheck={false} />
          </label>
          <label>
            Value
            <input value={value} onInput={(event) => change(i, [name, event.currentTarget.value])} autocomplete="off" spellcheck={false} placeholder={hintOf(type, name)} />
          </label>
          {rows.length > 1 && (
            <button type="button" class="small" aria-label={`Remove ${name || 'the parameter'}`} onClick={() => remove(i)}>
              Remove
            </button>
          )}
        </div>
      ))}
      <div class="buttons">
        <button ref={add} type="button" onClick={() => setRows([...rows, ['', '']])}>
          Add a parameter
        </button>
        <button class="primary">Search</button>
      </div>
    </form>
  );
}

const hints: Record<string, string> = {
  string: 'the beginning of a word',
  token: 'code or system|code',
  reference: 'Type/id',
  date: '2026-03, or ge2026-03-01',
  number: '7, or gt7',
  uri: 'https://…',
};

function hintOf(type: TypeInfo, name: string): string {
  const kind = type.parameters.find((p) => p.name === name.split(/[:.]/)[0])?.type;
  return hints[kind ?? ''] ?? '';
}

/** owners is the _revinclude for the column of owners, which is not shown among the parameters. */
const owners = 'RelatedPerson:patient';

/** requestOf returns the path of the search below the FHIR API. */
function requestOf(type: string, query: URLSearchParams): string {
  const all = new URLSearchParams(query);
  if (type === 'Patient' && !all.has('_revinclude')) all.append('_revinclude', owners);
  const text = all.toString();
  return `/${type}${text ? `?${text}` : ''}`;
}

function Results({ type, query }: { type: TypeInfo; query: URLSearchParams }) {
  const { client } = useSite();
  const text = query.toString();
  const request = requestOf(type.type, query);
  const result = useLoad(async () => (await client.fhir(request)).json, [client, type.type, text]);
  useEffect(() => {
    if (result.data && !result.loading) announce(summary(result.data));
  }, [result.data, result.loading]);
  return <View of={result}>{(bundle) => <Page type={type.type} bundle={bundle} request={request} />}</View>;
}

function matchesOf(bundle: Json): Json[] {
  return (bundle.entry ?? []).filter((e: Json) => e.search?.mode === 'match').map((e: Json) => e.resource);
}

function summary(bundle: Json): string {
  const shown = matchesOf(bundle).length;
  const records = `${shown} ${shown === 1 ? 'record' : 'records'}`;
  return bundle.total === undefined ? `${records} on this page.` : `${records} on this page, ${bundle.total.toLocaleString()} in total.`;
}

/** follow shows the page to which a link of the bundle leads. */
function follow(type: string, url: string): void {
  go(`/search/${type}`, new URL(url, location.href).searchParams);
}

function Page({ type, bundle, request }: { type: string; bundle: Json; request: string }) {
  const { client } = useSite();
  const matches = matchesOf(bundle);
  const others = (bundle.entry ?? []).filter((e: Json) => e.search?.mode !== 'match').map((e: Json) => e.resource);
  const columns = columnsOf(type);
  const link = (relation: string): string | undefined => bundle.link?.find((l: Json) => l.relation === relation)?.url;
  const url = location.origin + api(client.siteId) + '/fhir' + request;
  const rows = () => [
    ['id', ...columns.map((c) => c.name), 'updated'],
    ...matches.map((r) => [r.id, ...columns.map((c) => c.value(r, others)), r.meta?.lastUpdated ?? '']),
  ];
  const previous = link('previous');
  const next = link('next');
  return (
    <section aria-label="Results">
      <div class="toolbar">
        <p>{summary(bundle)}</p>
        <div class="buttons">
          <CopyButton text={url}>Copy URL</CopyButton>
          <CopyButton text={`curl --header "Authorization: Bearer $TOKEN" --header 'Accept: application/fhir+json' '${url.replaceAll("'", '%27')}'`}>Copy curl</CopyButton>
          <CopyButton text={() => csv(rows())}>Copy CSV</CopyButton>
        </div>
      </div>
      {matches.length === 0 ? (
        <Empty>No record matches. Remove a parameter, or search for a shorter beginning.</Empty>
      ) : (
        <Table type={type} matches={matches} others={others} columns={columns} />
      )}
      <nav class="pager" aria-label="Pages of results">
        <button disabled={!previous} onClick={() => previous && follow(type, previous)}>
          Previous
        </button>
        <button disabled={!next} onClick={() => next && follow(type, next)}>
          Next
        </button>
      </nav>
    </section>
  );
}

function Table({ type, matches, others, columns }: { type: string; matches: Json[]; others: Json[]; columns: Column[] }) {
  const { metadata } = useSite();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Table of results">
      <table>
        <thead>
          <tr>
            {columns.map((c) => (
              <th scope="col">{c.name}</th>
            ))}
            <th scope="col">Updated</th>
          </tr>
        </thead>
        <tbody>
          {matches.map((resource) => (
            <tr>
              {columns.map((c, i) => {
                const value = c.value(resource, others);
                const text = c.mono ? <code>{value}</code> : value;
                return i === 0 ? (
                  <th scope="row">
                    <Link to={`/record/${type}/${resource.id}`}>{value || `${type}/${resource.id}`}</Link>
                  </th>
                ) : (
                  <td>{text}</td>
                );
              })}
              <td class="quiet">{instant(resource.meta?.lastUpdated, metadata.zone)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
