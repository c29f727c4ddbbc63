// What just happened, for people who see it and for screen readers.

import { useEffect, useState } from 'preact/hooks';

const announced = new EventTarget();

/** announce shows a short message for some seconds. */
export function announce(message: string): void {
  announced.dispatchEvent(new CustomEvent('message', { detail: message }));
}

/** Announcements is the live region. The application has one. */
export function Announcements() {
  const [message, setMessage] = useState('');
  useEffect(() => {
    let timer = 0;
    const show = (event: Event) => {
      setMessage((event as CustomEvent<string>).detail);
      clearTimeout(timer);
      timer = window.setTimeout(() => setMessage(''), 6000);
    };
    announced.addEventListener('message', show);
    return () => announced.removeEventListener('message', show);
  }, []);
  return (
    <div class={message ? 'toast shown' : 'toast'} role="status" aria-live="polite">
      {message}
    </div>
  );
}
