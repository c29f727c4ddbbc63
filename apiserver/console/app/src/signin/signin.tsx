// Signing in to a site: with a token, or at one of the site's issuers.

import { useEffect, useState } from 'preact/hooks';
import { Client } from '../api/client';
import { ApiError } from '../api/errors';
import { expiryOf } from '../api/expiry';
import { loadMetadata, type Metadata } from '../metadata';
import { useAction } from '../ui/action';
import type { Grant, Issuer } from './flow';

export interface SignedIn extends Grant {
  metadata: Metadata;
}

interface Props {
  siteId: string;
  base: string;
  /** again is true if a session has ended. */
  again?: boolean;
  onSignedIn: (signedIn: SignedIn) => void;
}

/** check returns the metadata of a site if it accepts a token, which may lack rights. */
async function check(siteId: string, token: string): Promise<Metadata> {
  const client = new Client(siteId);
  client.use(token);
  const metadata = await loadMetadata(client);
  try {
    await client.fhir('/Patient?_summary=count');
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 403) throw error;
  }
  return metadata;
}

function problem(error: unknown, siteId: string): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : 'The sign-in failed.';
  if (error.status === 401) return `The site does not accept this token: ${error.message}`;
  if (error.status === 404) return `There is no site “${siteId}”, or the token gives no right to it.`;
  return error.message;
}

export function SignIn({ siteId, base, again, onSignedIn }: Props) {
  const [token, setToken] = useState('');
  const [issuers, setIssuers] = useState<Issuer[]>([]);
  const [known, setKnown] = useState(true);
  const [failure, setFailure] = useState('');

  const { busy, act } = useAction(async (step: () => Promise<void>) => {
    setFailure('');
    try {
      await step();
    } catch (error) {
      setFailure(problem(error, siteId));
    }
  });
  const enter = (grant: Grant) => act(async () => onSignedIn({ ...grant, metadata: await check(siteId, grant.token) }));

  useEffect(() => {
    const client = new Client(siteId);
    const start = async () => {
      if (location.pathname === `${base}/callback`) {
        const { finish, problemOf } = await import('./flow');
        try {
          await enter(await finish(base));
          return;
        } catch (error) {
          setFailure(problemOf(error));
        }
      }
      try {
        const metadata = await loadMetadata(client);
        if (metadata.hasIssuers) setIssuers(await (await import('./flow')).loadIssuers(client));
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) setKnown(false);
        else setFailure(problem(error, siteId));
      }
    };
    void start();
  }, [siteId]);

  return (
    <form
      class="signin"
      onSubmit={(event) => {
        event.preventDefault();
        if (token.trim()) void enter({ token: token.trim(), expires: expiryOf(token.trim()) });
        else setFailure('Paste a token.');
      }}
    >
      {again && <p>The token is not valid any more. Sign in again to continue where you were.</p>}
      {!known && (
        <p class="notice">
          No site “{siteId}” answers without a token. If you have a token for it, sign in with the token; else check the name in the address, or <a href="/console">choose another site</a>.
        </p>
      )}
      {issuers.map((issuer) => (
        <button
          type="button"
          class="primary wide"
          aria-disabled={busy}
          onClick={() => act(async () => (await import('./flow')).begin(issuer, base))}
        >
          Sign in with {issuer.name}
        </button>
      ))}
      {issuers.length > 0 && <p class="or">or</p>}
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
          aria-describedby="token-help"
          aria-invalid={failure !== ''}
          autofocus
        />
      </label>
      <p id="token-help" class="quiet">
        The token stays in this window’s memory, and is gone when you reload or close it.
      </p>
      {failure && (
        <p class="notice failure" role="alert">
          {failure}
        </p>
      )}
      <button class={issuers.length > 0 ? 'wide' : 'primary wide'} aria-disabled={busy}>
        {busy ? 'Signing in …' : 'Sign in'}
      </button>
    </form>
  );
}
