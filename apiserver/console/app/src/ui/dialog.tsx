import type { ComponentChildren } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks';

/** Dialog is modal: focus stays in it, and Escape closes it. The focus then returns to where it was. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const ref = useRef<HTMLDialogElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  // A layout effect, because its cleanup runs while the dialog is still in the page: one that is only removed does not return the focus.
  useLayoutEffect(() => {
    const dialog = ref.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  useEffect(() => {
    // A button that had the focus may be disabled or gone.
    if (document.activeElement === document.body) close.current!.focus();
  });
  const id = useId();
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={(event) => event.currentTarget.isConnected && onClose()}>
      <header>
        <h2 id={id}>{title}</h2>
        <button ref={close} type="button" class="small" onClick={() => ref.current?.close()}>
          Close
        </button>
      </header>
      {children}
    </dialog>
  );
}
