// The audit log, for auditors.

import { useLayoutEffect, useState } from 'preact/hooks';
import { ApiError, type Json } from '../api/errors';
import { instant } from '../dates';
import { localRecord } from '../fhir/references';
import { go, Link } from '../router';
import { useSite } from '../site';
import { useAction } from '../ui/action';
import { Empty, Failure, useLoad, View } from '../ui/load';
import type { PageProps } from './index';

const actions: [string, string][] = [['', 'any'], ['C', 'create'], ['R', 'read'], ['U', 'update'], ['D', 'delete'], ['E', 'search or bundle']];
const outcomes: [string, string][] = [['', 'any'], ['0', 'success'], ['4', 'refused or invalid'], ['8', 'server error'], ['12', 'unavailable']];

export default function Audit({ route }: PageProps) {
  const { client } = useSite();
  const query = new URLSearchParams(route.query);
  if (!query.has('_count')) query.set('_count', '50');
  const text = query.toString();
  const log = useLoad(async () => (await client.fhir(`/AuditEvent?${text}`)).json, [client, text]);
  const forbidden = log.error instanceof ApiError && log.error.status === 403;
  return (
    <>
      <h1>Audit</h1>
      {forbidden ? (
        <div class="state failure" role="alert">
          <h2>For auditors</h2>
          <p>You have no right to the audit log of this site. People with the role <code>paddock-auditor</code> see who read or changed a record.</p>
        </div>
      ) : (
        <>
          <Filters query={route.query} />
          <View of={log}>{(bundle) => <Entries bundle={bundle} query={query} />}</View>
        </>
      )}
    </>
  );
}

interface Fields {
  entity: string;
  agent: string;
  from: string;
  to: string;
  action: string;
  outcome: string;
}

function fieldsOf(query: URLSearchParams): Fields {
  const of = (name: string) => query.get(name) ?? '';
  const day = (prefix: string) => query.getAll('date').find((d) => d.startsWith(prefix))?.slice(prefix.length) ?? '';
  return { entity: of('entity'), agent: of('agent'), from: day('ge'), to: day('le'), action: of('action'), outcome: of('outcome') };
}

function queryOf({ entity, agent, from, to, action, outcome }: Fields, count = ''): URLSearchParams {
  const pairs: [string, string][] = [['entity', entity.trim()], ['agent', agent.trim()], ['action', action], ['outcome', outcome], ['date', from && `ge${from}`], ['date', to && `le${to}`], ['_count', count]];
  return new URLSearchParams(pairs.filter(([, value]) => value));
}

function Filters({ query }: { query: URLSearchParams }) {
  const entered = fieldsOf(query);
  const [fields, setFields] = useState(entered);
  // The fields stay when the address changes, so that they keep the focus. All pages have the same filters, so
  // turning pages keeps what is not submitted yet.
  useLayoutEffect(() => setFields(entered), [queryOf(entered).toString()]);
  const change = (changes: Partial<Fields>) => setFields({ ...fields, ...changes });
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        go('/audit', queryOf(fields, query.get('_count') ?? ''));
      }}
    >
      <label>
        Record
        <input data-search value={fields.entity} placeholder="Patient/rex" onInput={(e) => change({ entity: e.currentTarget.value })} spellcheck={false} />
      </label>
      <label>
        Caller
        <input value={fields.agent} onInput={(e) => change({ agent: e.currentTarget.value })} spellcheck={false} />
      </label>
      <label>
        From
        <input type="date" value={fields.from} onInput={(e) => change({ from: e.currentTarget.value })} />
      </label>
      <label>
        To
        <input type="date" value={fields.to} onInput={(e) => change({ to: e.currentTarget.value })} />
      </label>
      <Select name="Action" value={fields.action} options={actions} onChange={(action) => change({ action })} />
      <Select name="Outcome" value={fields.outcome} options={outcomes} onChange={(outcome) => change({ outcome })} />
      <button class="primary">Filter</button>
    </form>
  );
}

function Select({ name, value, options, onChange }: { name: string; value: string; options: [string, string][]; onChange: (value: string) => void }) {
  return (
    <label>
      {name}
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([code, text]) => (
          <option value={code}>{text}</option>
        ))}
      </select>
    </label>
  );
}

function Entries({ bundle, query }: { bundle: Json; query: URLSearchParams }) {
  const events: Json[] = (bundle.entry ?? []).map((e: Json) => e.resource);
  const next: string | undefined = bundle.link?.find((l: Json) => l.relation === 'next')?.url;
  return (
    <>
      <div class="toolbar">
        <p role="status">{events.length === 1 ? '1 entry' : `${events.length} entries`} on this page, newest first.</p>
        <Export query={query} />
      </div>
      {events.length === 0 ? (
        <Empty>No entry matches.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Entries of the audit log">
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Caller</th>
                <th scope="col">Interaction</th>
                <th scope="col">Outcome</th>
                <th scope="col">Records</th>
              </tr>
            </thead>
            <tbody>
              {events.map((event) => (
                <Entry event={event} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <nav class="pager" aria-label="Pages of the log">
        <button disabled={!next} onClick={() => next && go('/audit', new URL(next, location.href).searchParams)}>
          Next
        </button>
      </nav>
    </>
  );
}

function Entry({ event }: { event: Json }) {
  const { metadata } = useSite();
  const records: string[] = (event.entity ?? []).map((e: Json) => e.what?.reference).filter(Boolean);
  const agent = event.agent?.[0];
  return (
    <tr>
      <td>{instant(event.recorded, metadata.zone)}</td>
      <th scope="row">
        <code>{agent?.who?.identifier?.value ?? agent?.name ?? agent?.altId ?? agent?.who?.display ?? 'not authenticated'}</code>
      </th>
      <td>{event.subtype?.[0]?.code ?? event.action}</td>
      <td>
        {outcomes.find(([code]) => code === event.outcome)?.[1] ?? event.outcome} <span class="quiet">{event.outcomeDesc}</span>
      </td>
      <td>
        {records.slice(0, 5).map((reference) => {
          const target = localRecord(reference, metadata.baseUrl);
          return <div>{target ? <Link to={`/record/${target.type}/${target.id}`}>{reference}</Link> : reference}</div>;
        })}
        {records.length > 5 && <span class="quiet">and {records.length - 5} more</span>}
      </td>
    </tr>
  );
}

/** Export saves the entries that match as lines of JSON. */
function Export({ query }: { query: URLSearchParams }) {
  const { client } = useSite();
  const { busy, error, act } = useAction(async () => {
    const all = new URLSearchParams(query);
    all.delete('_count');
    all.delete('_page_token');
    const { text } = await client.fhir(`/AuditEvent?${all}`, { accept: 'application/fhir+ndjson' });
    const url = URL.createObjectURL(new Blob([text], { type: 'application/fhir+ndjson' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = `audit-${client.siteId}.ndjson`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  });
  return (
    <>
      <button aria-disabled={busy} onClick={act}>Export all matches</button>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
