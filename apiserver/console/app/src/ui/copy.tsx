import type { ComponentChildren } from 'preact';
import { announce } from './announce';

/** CopyButton copies a text to the clipboard. */
export function CopyButton({ text, children, label }: { text: string | (() => string); children: ComponentChildren; label?: string }) {
  return (
    <button
      class="small"
      type="button"
      aria-label={label}
      onClick={async () => {
        try {
          await navigator.clipboard.writeText(typeof text === 'function' ? text() : text);
          announce('Copied.');
        } catch {
          announce('The browser does not allow copying.');
        }
      }}
    >
      {children}
    </button>
  );
}

/** Copyable is an identifier with a button that copies it. */
export function Copyable({ value }: { value: string }) {
  return (
    <span class="copyable">
      <code>{value}</code>
      <CopyButton text={value} label={`Copy ${value}`}>
        Copy
      </CopyButton>
    </span>
  );
}
