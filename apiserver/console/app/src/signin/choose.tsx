import { useState } from 'preact/hooks';

/** ChooseSite is the page at /console. It is the same for every site. */
export function ChooseSite() {
  const [siteId, setSiteId] = useState('');
  return (
    <main class="entry" id="main">
      <h1>Paddock console</h1>
      <form
        class="signin"
        onSubmit={(event) => {
          event.preventDefault();
          if (siteId.trim()) location.assign(`/site/${encodeURIComponent(siteId.trim())}/console`);
        }}
      >
        <label>
          Site
          <input value={siteId} onInput={(event) => setSiteId(event.currentTarget.value)} autocomplete="off" spellcheck={false} required autofocus aria-describedby="site-help" />
        </label>
        <p id="site-help" class="quiet">
          The id of the site, as in its address: <code>/site/{siteId || 'oak'}</code>
        </p>
        <button class="primary wide">Continue</button>
      </form>
    </main>
  );
}
