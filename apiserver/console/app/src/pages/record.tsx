// A record: a readable card, references both ways, and the stored JSON with its edit.

import { useRef, useState } from 'preact/hooks';
import { batch, type Client } from '../api/client';
import type { Json } from '../api/errors';
import { instant } from '../dates';
import { titleOf } from '../fhir/display';
import { labelOf, localRecord, referencesOf } from '../fhir/references';
import { Link } from '../router';
import { useSite } from '../site';
import type { Metadata } from '../metadata';
import { CopyButton } from '../ui/copy';
import { useLoad, View } from '../ui/load';
import { Card } from './card';
import { Editor } from './editor';
import type { PageProps } from './index';

export interface Stored {
  resource: Json;
  /** text is the resource as it is stored: JavaScript's numbers would lose digits of decimals. */
  text: string;
  etag: string;
}

async function read(client: Client, type: string, id: string): Promise<Stored> {
  const answer = await client.fhir(`/${type}/${encodeURIComponent(id)}?_pretty=true`);
  return { resource: answer.json, text: answer.text, etag: answer.headers.get('ETag') ?? '' };
}

export default function Record({ rest }: PageProps) {
  const { client, metadata } = useSite();
  const [type = '', id = ''] = rest;
  const stored = useLoad(() => read(client, type, id), [client, type, id]);
  const [editing, setEditing] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const close = () => {
    edit.current?.focus(); // the button that has the focus goes with the editor
    setEditing(false);
  };
  return (
    <>
      <View of={stored}>
        {(record) => (
          <>
            <div class="toolbar">
              <h1>{titleOf(record.resource)}</h1>
              <div class="buttons noprint">
                <Link class="button" to={`/history/${type}/${id}`}>
                  History
                </Link>
                <button ref={edit} aria-disabled={stored.loading} onClick={() => !stored.loading && setEditing(!editing)} aria-expanded={editing}>
                  {editing ? 'Close the editor' : 'Edit'}
                </button>
                <button onClick={() => print()}>Print</button>
              </div>
            </div>
            <p class="quiet">
              {type}, version {record.resource.meta?.versionId}, updated {instant(record.resource.meta?.lastUpdated, metadata.zone)}
            </p>
            {editing && <Editor type={type} id={id} stored={record} onClose={close} onSaved={stored.reload} />}
            <div class="split">
              <div>
                <Card resource={record.resource} />
                <Outgoing resource={record.resource} />
                <Incoming type={type} id={id} />
              </div>
              <section class="noprint" aria-labelledby="json-title">
                <div class="toolbar">
                  <h2 id="json-title">JSON</h2>
                  <CopyButton text={record.text}>Copy JSON</CopyButton>
                </div>
                <pre class="json" tabIndex={0} aria-label="JSON of the record">{record.text}</pre>
              </section>
            </div>
          </>
        )}
      </View>
      {stored.error !== undefined && (
        <p>
          <Link to={`/history/${type}/${id}`}>The history</Link> has all versions of a deleted record.
        </p>
      )}
    </>
  );
}

/** Outgoing lists the references of a record, with the names of what they refer to. */
function Outgoing({ resource }: { resource: Json }) {
  const { client, metadata } = useSite();
  const references = referencesOf(resource);
  const names = useLoad(() => namesOf(client, references.map((r) => r.reference), metadata), [client, resource]);
  if (references.length === 0) return null;
  return (
    <section aria-labelledby="outgoing-title">
      <h2 id="outgoing-title">Refers to</h2>
      <ul class="links">
        {references.map(({ path, reference, display }) => {
          const target = localRecord(reference, metadata.baseUrl);
          const name = names.data?.get(reference) ?? display ?? reference;
          return (
            <li>
              <span class="quiet" title={path}>{labelOf(path)}</span> {target ? <Link to={`/record/${target.type}/${target.id}`}>{name}</Link> : name}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** maxNames is how many names of referenced records are read. */
const maxNames = 50;

async function namesOf(client: Client, references: string[], metadata: Metadata): Promise<Map<string, string>> {
  const known = new Set(metadata.types.map((t) => t.type));
  const readable = [...new Set(references)].filter((r) => known.has(localRecord(r, metadata.baseUrl)?.type ?? '')).slice(0, maxNames);
  const found = await batch(client, readable.map((r) => { const target = localRecord(r, metadata.baseUrl)!; return `${target.type}/${target.id}`; }));
  return new Map(readable.flatMap((reference, i) => (found[i] ? [[reference, titleOf(found[i])] as [string, string]] : [])));
}

/** Incoming lists the records that refer to a record. */
function Incoming({ type, id }: { type: string; id: string }) {
  const { client, metadata } = useSite();
  const incoming = useLoad(async () => {
    const searches = metadata.types.find((t) => t.type === type)?.referredBy ?? [];
    const found = await batch(client, searches.map((s) => `${s.type}?${s.parameter}=${type}/${id}&_count=10`));
    const groups = new Map<string, { resource: Json; parameters: string[]; type: string }>();
    found.forEach((bundle, i) => {
      const { type: from, parameter } = searches[i]!;
      for (const { resource } of bundle?.entry ?? []) {
        const key = `${from}/${resource.id}`;
        const known = groups.get(key) ?? { resource, parameters: [], type: from };
        known.parameters.push(parameter);
        groups.set(key, known);
      }
    });
    return [...groups.values()];
  }, [client, type, id]);
  return (
    <section aria-labelledby="incoming-title">
      <h2 id="incoming-title">Referred to by</h2>
      <View of={incoming}>
        {(records) =>
          records.length === 0 ? (
            <p class="quiet">No record that you may see refers to this one.</p>
          ) : (
            <ul class="links">
              {records.map(({ resource, parameters, type: from }) => (
                <li>
                  <Link to={`/record/${from}/${resource.id}`}>{titleOf(resource)}</Link>{' '}
                  <span class="quiet">
                    {from}, by {parameters.join(', ')}
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </View>
    </section>
  );
}
