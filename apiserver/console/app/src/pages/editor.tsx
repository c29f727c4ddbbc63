// The editor of a record: what is checked and saved is the text, so that no digit of a decimal is lost.

import { useEffect, useState } from 'preact/hooks';
import { ApiError, issuesOf, type Issue } from '../api/errors';
import { go } from '../router';
import { useSite } from '../site';
import { useAction } from '../ui/action';
import { announce } from '../ui/announce';
import { Dialog } from '../ui/dialog';
import { Failure } from '../ui/load';
import type { Stored } from './record';

interface Props {
  type: string;
  id: string;
  /** stored is the record when the editor opens. Later changes of it do not replace the text. */
  stored: Stored;
  onClose: () => void;
  onSaved: () => void;
}

export function Editor({ type, id, stored, onClose, onSaved }: Props) {
  const { client } = useSite();
  const [opened] = useState(stored);
  const [text, setText] = useState(opened.text);
  const [issues, setIssues] = useState<Issue[]>();
  const [deleting, setDeleting] = useState(false);
  const path = `/${type}/${encodeURIComponent(id)}`;
  const precondition = { 'If-Match': opened.etag };
  const { busy, error, act } = useAction(async (step: () => Promise<(() => void) | void>) => {
    setIssues(undefined);
    return step();
  });
  const changed = text !== opened.text;
  useEffect(() => {
    if (!changed) return;
    const warn = (event: Event) => event.preventDefault();
    addEventListener('beforeunload', warn);
    return () => removeEventListener('beforeunload', warn);
  }, [changed]);

  const isJson = () => {
    try {
      JSON.parse(text);
      return true;
    } catch (problem) {
      setIssues([{ severity: 'error', text: `This is no JSON: ${(problem as Error).message}.` }]);
      return false;
    }
  };
  const validate = async () => {
    if (isJson()) setIssues(issuesOf((await client.fhir(`${path}/$validate`, { method: 'POST', body: text })).json));
  };
  const save = async () => {
    if (!isJson()) return;
    const saved = await client.fhir(path, { method: 'PUT', body: text, headers: precondition });
    announce(`Saved as version ${saved.json.meta.versionId}.`);
    onSaved();
    return onClose;
  };
  const remove = async () => {
    setDeleting(false);
    await client.fhir(path, { method: 'DELETE', headers: precondition });
    announce('Deleted. The history keeps all versions.');
    return () => go(`/history/${type}/${id}`);
  };

  return (
    <section class="editor noprint" aria-labelledby="editor-title">
      <h2 id="editor-title">Edit</h2>
      <label>
        JSON of the next version
        <textarea rows={18} spellcheck={false} readOnly={busy} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <div class="buttons">
        <button aria-disabled={busy} onClick={() => act(validate)}>
          Validate
        </button>
        <button class="primary" aria-disabled={busy} disabled={!changed} onClick={() => act(save)}>
          Save
        </button>
        <button class="danger" aria-disabled={busy} onClick={() => !busy && setDeleting(true)}>
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
            <button class="danger" onClick={() => act(remove)}>
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
