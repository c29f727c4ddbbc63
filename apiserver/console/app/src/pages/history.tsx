// The history of a record: a timeline, and the difference of two versions by element.

import { useState } from 'preact/hooks';
import type { Json } from '../api/errors';
import { instant } from '../dates';
import { diff, type Change } from '../diff';
import { titleOf } from '../fhir/display';
import { Link } from '../router';
import { useSite } from '../site';
import { useAction } from '../ui/action';
import { announce } from '../ui/announce';
import { Dialog } from '../ui/dialog';
import { Empty, Failure, useLoad, View } from '../ui/load';
import type { PageProps } from './index';

interface Version {
  id: string;
  at: string;
  method: string;
  etag: string;
  /** resource is missing for a deletion. */
  resource?: Json;
}

const pageSize = 50;

function versionOf(entry: Json): Version {
  const etag: string = entry.response?.etag ?? '';
  return {
    id: entry.resource?.meta?.versionId ?? /"(.*)"/.exec(etag)?.[1] ?? '',
    at: entry.resource?.meta?.lastUpdated ?? entry.response?.lastModified ?? '',
    method: entry.request?.method ?? '',
    etag,
    resource: entry.resource,
  };
}

export default function History({ rest }: PageProps) {
  const { client } = useSite();
  const [type = '', id = ''] = rest;
  const path = `/${type}/${encodeURIComponent(id)}`;
  const history = useLoad(async () => {
    const bundle = (await client.fhir(`${path}/_history?_count=${pageSize}`)).json;
    return { total: bundle.total as number | undefined, versions: (bundle.entry ?? []).map(versionOf) as Version[] };
  }, [client, path]);
  return (
    <View of={history}>
      {({ total, versions }) => (
        <>
          <div class="toolbar">
            <h1>History of {titleOf(versions.find((v) => v.resource)?.resource) || `${type}/${id}`}</h1>
            <Link class="button" to={`/record/${type}/${id}`}>
              Record
            </Link>
          </div>
          {total !== undefined && total > versions.length && <p class="notice">The newest {versions.length} of {total} versions.</p>}
          {versions.length === 0 ? <Empty>There is no version.</Empty> : <Versions path={path} versions={versions} onRestored={history.reload} />}
        </>
      )}
    </View>
  );
}

const verbs: Record<string, string> = { POST: 'created', PUT: 'updated', PATCH: 'patched', DELETE: 'deleted' };

function Versions({ path, versions, onRestored }: { path: string; versions: Version[]; onRestored: () => void }) {
  const { metadata } = useSite();
  const [newer, setNewer] = useState(versions[0]!.id);
  const [older, setOlder] = useState((versions[1] ?? versions[0])!.id);
  const [restoring, setRestoring] = useState<Version>();
  const find = (id: string) => versions.find((v) => v.id === id);
  return (
    <div class="split">
      <section aria-labelledby="versions-title">
        <h2 id="versions-title">Versions</h2>
        <ol class="timeline">
          {versions.map((version, i) => (
            <li key={version.id}>
              <p>
                <strong>Version {version.id}</strong> {verbs[version.method] ?? version.method} <span class="quiet">{instant(version.at, metadata.zone)}</span>
              </p>
              <div class="buttons">
                <label class="inline">
                  <input type="radio" name="older" checked={older === version.id} onChange={() => setOlder(version.id)} aria-label={`Compare from version ${version.id}`} />
                  from
                </label>
                <label class="inline">
                  <input type="radio" name="newer" checked={newer === version.id} onChange={() => setNewer(version.id)} aria-label={`Compare to version ${version.id}`} />
                  to
                </label>
                {i > 0 && version.resource && (
                  <button class="small" onClick={() => setRestoring(version)} aria-label={`Restore version ${version.id}`}>
                    Restore
                  </button>
                )}
              </div>
            </li>
          ))}
        </ol>
      </section>
      <section aria-labelledby="changes-title" aria-live="polite">
        <h2 id="changes-title">
          From version {older} to {newer}
        </h2>
        <Changes before={find(older)?.resource} after={find(newer)?.resource} />
      </section>
      {restoring && <Restore path={path} version={restoring} current={versions[0]!} onClose={() => setRestoring(undefined)} onRestored={onRestored} />}
    </div>
  );
}

/** withoutVersion returns a resource without what differs between all versions. */
function withoutVersion(resource: Json): Json {
  if (!resource) return undefined;
  const { versionId: _, lastUpdated: __, ...meta } = resource.meta ?? {};
  return { ...resource, meta: Object.keys(meta).length > 0 ? meta : undefined };
}

const marks = { added: '+', removed: '−', changed: '≠', moved: '↕' };

function Changes({ before, after }: { before: Json; after: Json }) {
  const changes = diff(withoutVersion(before), withoutVersion(after));
  if (changes.length === 0) return <Empty>These versions have the same content.</Empty>;
  if (!before || !after) return <p>{after ? 'The record was created or restored.' : 'The record was deleted.'}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Changes">
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">Change</th>
            <th scope="col">Element</th>
            <th scope="col">Before</th>
            <th scope="col">After</th>
          </tr>
        </thead>
        <tbody>
          {changes.map((change) => (
            <ChangeRow change={change} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function ChangeRow({ change }: { change: Change }) {
  return (
    <tr class={change.kind}>
      <td>
        <span aria-hidden="true">{marks[change.kind]}</span> {change.kind}
      </td>
      <th scope="row">
        <code>{change.path}</code>
      </th>
      <td>{change.before !== undefined && <pre>{show(change.before)}</pre>}</td>
      <td>{change.after !== undefined && <pre>{show(change.after)}</pre>}</td>
    </tr>
  );
}

function show(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

interface RestoreProps {
  path: string;
  version: Version;
  current: Version;
  onClose: () => void;
  onRestored: () => void;
}

function Restore({ path, version, current, onClose, onRestored }: RestoreProps) {
  const { client } = useSite();
  const { busy, error, act } = useAction(async () => {
    // The text of the version, because JSON.parse loses digits of decimals.
    const { text } = await client.fhir(`${path}/_history/${version.id}`);
    const saved = await client.fhir(path, { method: 'PUT', body: text, headers: { 'If-Match': current.etag } });
    announce(`Restored as version ${saved.json.meta.versionId}.`);
    onRestored();
    return onClose;
  });
  return (
    <Dialog title={`Restore version ${version.id}?`} onClose={onClose}>
      <p>The content of version {version.id} becomes the newest version. No version is lost.</p>
      {error !== undefined && <Failure error={error} />}
      <div class="buttons">
        <button class="primary" aria-disabled={busy} onClick={act}>
          Restore the version
        </button>
      </div>
    </Dialog>
  );
}
