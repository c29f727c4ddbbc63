import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Client } from './api/client';
import { renewalIn, warning } from './api/expiry';
import { type Metadata } from './metadata';
import { PageOf, pages } from './pages';
import { go, Link, useRoute, type Route } from './router';
import { SiteContext } from './site';
import { ChooseSite } from './signin/choose';
import { SignIn, type SignedIn } from './signin/signin';
import type { Grant } from './signin/flow';
import { Announcements, announce } from './ui/announce';
import { Dialog } from './ui/dialog';
import { retryFailed } from './ui/load';

export function App() {
  const route = useRoute();
  return (
    <>
      {route.siteId ? <SiteApp key={route.siteId} route={route} /> : <ChooseSite />}
      <Announcements />
    </>
  );
}

function SiteApp({ route }: { route: Route }) {
  const [expired, setExpired] = useState(false);
  const [metadata, setMetadata] = useState<Metadata>();
  const [grant, setGrant] = useState<Grant>();
  const client = useMemo(() => new Client(route.siteId, () => setExpired(true)), [route.siteId]);

  const enter = (signedIn: SignedIn) => {
    client.use(signedIn.token);
    setMetadata(signedIn.metadata);
    setGrant(signedIn);
    setExpired(false);
    retryFailed();
  };
  const leave = () => {
    client.forget();
    setMetadata(undefined);
    setGrant(undefined);
    setExpired(false);
    sessionStorage.clear(); // Remove the state of a sign-in at an issuer that was not completed.
    // The browser may keep this page for its Back button, with all of its memory.
    addEventListener('pageshow', (event) => event.persisted && location.reload());
    location.assign(route.base);
  };
  const warned = useExpiry(grant, client, setGrant, () => setExpired(true));

  if (!metadata || !grant) {
    return (
      <main class="entry" id="main">
        <h1>
          Site <code>{route.siteId}</code>
        </h1>
        <SignIn siteId={route.siteId} base={route.base} onSignedIn={enter} />
      </main>
    );
  }
  return (
    <SiteContext.Provider value={{ client, metadata }}>
      <Shell route={route} metadata={metadata} warned={warned && !expired} onSignOut={leave} />
      {expired && (
        <Dialog title="The session has ended" onClose={() => setExpired(false)}>
          <SignIn siteId={route.siteId} base={route.base} again onSignedIn={enter} />
        </Dialog>
      )}
    </SiteContext.Provider>
  );
}

/** useExpiry renews the token before its expiry if possible. Else it reports that the token ends soon. */
function useExpiry(grant: Grant | undefined, client: Client, onRenewed: (grant: Grant) => void, onExpired: () => void): boolean {
  const [warned, setWarned] = useState(false);
  useEffect(() => {
    setWarned(false);
    if (!grant?.expires) return;
    const left = grant.expires - Date.now();
    let current = true;
    const renewal = after(grant.renew ? renewalIn(left) : left - warning, async () => {
      try {
        if (!grant.renew) throw new Error('the issuer does not allow renewal');
        const next = await grant.renew();
        if (!current) return; // the person has signed out, or in again
        client.use(next.token);
        onRenewed(next);
      } catch {
        if (current) setWarned(true);
      }
    });
    const end = after(left, onExpired);
    return () => {
      current = false;
      clearTimeout(renewal);
      clearTimeout(end);
    };
  }, [grant]);
  return warned;
}

/** after runs what after a delay in milliseconds. Browsers do not support delays above 24 days: those never end here. */
function after(delay: number, run: () => void): number | undefined {
  return delay < 2 ** 31 ? window.setTimeout(run, Math.max(delay, 0)) : undefined;
}

interface ShellProps {
  route: Route;
  metadata: Metadata;
  warned: boolean;
  onSignOut: () => void;
}

function Shell({ route, metadata, warned, onSignOut }: ShellProps) {
  const [help, setHelp] = useState(false);
  const offline = useOffline();
  const main = useRef<HTMLElement>(null);
  const section = route.path.split('/')[1] ?? '';
  useShortcuts(() => setHelp(true));

  useEffect(() => {
    document.title = `${pages.find((p) => p.section === section)?.title ?? 'Record'} · ${route.siteId} · Paddock`;
    // The form of a search stays when it shows records of another type, so it keeps the focus.
    if (!document.activeElement?.closest('[role="search"]')) main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [route.path]);

  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="brand">
          Paddock <code>{route.siteId}</code>
        </Link>
        <nav aria-label="Pages">
          {pages.map((page) => (
            <Link to={`/${page.section}`} aria-current={page.section === section || (page.section === 'search' && ['record', 'history'].includes(section)) ? 'page' : undefined}>
              {page.title}
            </Link>
          ))}
        </nav>
        <div class="actions">
          <button class="small" type="button" onClick={() => setHelp(true)} aria-label="Keyboard shortcuts">
            ?
          </button>
          <button class="small" type="button" onClick={onSignOut}>
            Sign out
          </button>
        </div>
      </header>
      {offline && <div class="banner" role="status">The browser is offline. What you see may be out of date.</div>}
      {warned && <div class="banner" role="status">The token ends within a minute. Save your work; you will be asked to sign in again.</div>}
      <main id="main" ref={main} tabIndex={-1}>
        <PageOf route={route} section={section} />
      </main>
      <footer class="bottom quiet">
        Paddock{metadata.version !== 'unknown' && ` ${metadata.version}`} · times of the site in {metadata.zone}
      </footer>
      {help && <Shortcuts onClose={() => setHelp(false)} />}
    </>
  );
}

function useOffline(): boolean {
  const [offline, setOffline] = useState(!navigator.onLine);
  useEffect(() => {
    const update = () => {
      setOffline(!navigator.onLine);
      if (navigator.onLine) announce('The browser is online again.');
    };
    addEventListener('online', update);
    addEventListener('offline', update);
    return () => {
      removeEventListener('online', update);
      removeEventListener('offline', update);
    };
  }, []);
  return offline;
}

/** useShortcuts handles keys that are pressed outside of fields: / for search, ? for help, g and a letter for a page. */
function useShortcuts(onHelp: () => void): void {
  // A layout effect, so that keys work as soon as the page is there.
  useLayoutEffect(() => {
    let going = false;
    const press = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, textarea, select, dialog, [contenteditable]')) return;
      const page = going ? pages.find((p) => p.key === event.key) : undefined;
      going = event.key === 'g';
      if (event.key === '?') onHelp();
      else if (event.key === '/') focusSearch();
      else if (page) go(`/${page.section}`);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  }, []);
}

function focusSearch(): void {
  const field = () => document.querySelector<HTMLElement>('[data-search]');
  if (!field()) go('/search');
  const wait = (tries: number) => {
    const found = field();
    if (found) found.focus();
    else if (tries > 0) setTimeout(() => wait(tries - 1), 50);
  };
  setTimeout(() => wait(200), 50); // a new page takes the focus first
}

function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keyboard shortcuts" onClose={onClose}>
      <dl class="keys">
        <dt><kbd>/</kbd></dt>
        <dd>search</dd>
        <dt><kbd>?</kbd></dt>
        <dd>this list</dd>
        {pages.map((page) => (
          <>
            <dt><kbd>g</kbd> <kbd>{page.key}</kbd></dt>
            <dd>{page.title}</dd>
          </>
        ))}
        <dt><kbd>Esc</kbd></dt>
        <dd>close a dialog</dd>
      </dl>
    </Dialog>
  );
}
