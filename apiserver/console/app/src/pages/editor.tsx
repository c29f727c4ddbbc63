// The editor of a record: what is checked and saved is the text, so that no digit of a decimal is lost.

import { useState } from 'preact/hooks';
import { ApiError, issuesOf, type Issue } from '../api/errors';
import { go } from '../router';
import { useSite } from '../site';
import { announce } from '../ui/announce';
import { Dialog } from '../ui/dialog';
import { Failure } from '../ui/load';
import type { Stored } from './record';

interface Props {
  type: string;
  id: string;
  stored: Stored;
  onSaved: () => void;
}

export function Editor({ type, id, stored, onSaved }: Props) {
  const { client } = useSite();
  const [text, setText] = useState(stored.text);
  const [issues, setIssues] = useState<Issue[]>();
  const [error, setError] = useState<unknown>();
  const [deleting, setDeleting] = useState(false);
  const path = `/${type}/${encodeURIComponent(id)}`;

  const attempt = async (run: () => Promise<void>) => {
    setError(undefined);
    setIssues(undefined);
    try {
      JSON.parse(text);
    } catch (problem) {
      setIssues([{ severity: 'error', text: `This is no JSON: ${(problem as Error).message}.` }]);
      return;
    }
    try {
      await run();
    } catch (problem) {
      setError(problem);
    }
  };
  const validate = () =>
    attempt(async () => {
      setIssues(issuesOf((await client.fhir(`${path}/$validate`, { method: 'POST', body: text })).json));
    });
  const save = () =>
    attempt(async () => {
      const saved = await client.fhir(path, { method: 'PUT', body: text, headers: { 'If-Match': stored.etag } });
      announce(`Saved as version ${saved.json.meta.versionId}.`);
      onSaved();
    });
  const remove = async () => {
    setDeleting(false);
    try {
      await client.fhir(path, { method: 'DELETE', headers: { 'If-Match': stored.etag } });
      announce('Deleted. The history keeps all versions.');
      go(`/history/${type}/${id}`);
    } catch (problem) {
      setError(problem);
    }
  };

  return (
    <section class="editor noprint" aria-labelledby="editor-title">
      <h2 id="editor-title">Edit</h2>
      <label>
        JSON of the next version
        <textarea rows={18} spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="buttons">
        <button onClick={validate}>Validate</button>
        <button class="primary" onClick={save} disabled={text === stored.text}>
          Save
        </button>
        <button class="danger" onClick={() => setDeleting(true)}>
          Delete
        </button>
      </div>
      {issues && <Issues issues={issues} />}
      {error !== undefined && <Failure error={error} />}
      {error instanceof ApiError && error.status === 412 && <p>The record was changed since you opened it. Copy your text, close the editor, and apply your change to the newest version.</p>}
      {deleting && (
        <Dialog title={`Delete ${type}/${id}?`} onClose={() => setDeleting(false)}>
          <p>Searches no longer find it. Its versions stay in the history, from which it can be restored.</p>
          <div class="buttons">
            <button class="danger" onClick={remove}>
              Delete the record
            </button>
          </div>
        </Dialog>
      )}
    </section>
  );
}

function Issues({ issues }: { issues: Issue[] }) {
  const wrong = issues.filter((i) => i.severity === 'error' || i.severity === 'fatal');
  return (
    <div class={wrong.length > 0 ? 'notice failure' : 'notice good'} role="status">
      <strong>{wrong.length > 0 ? `${wrong.length} ${wrong.length === 1 ? 'error' : 'errors'}` : 'The text is valid.'}</strong>
      <ul>
        {issues.map((issue) => (
          <li>
            {issue.at && <code>{issue.at}</code>} {issue.text}
          </li>
        ))}
      </ul>
    </div>
  );
}
