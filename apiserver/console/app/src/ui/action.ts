import { useEffect, useRef, useState } from 'preact/hooks';

export interface Action<A extends unknown[]> {
  busy: boolean;
  /** error is why the last run failed. */
  error?: unknown;
  act: (...args: A) => Promise<void>;
}

/**
 * useAction runs what a person starts. act does nothing during a run, so that nothing is sent twice. Buttons then
 * have aria-disabled, because one that becomes disabled loses the focus. run may return what is left to do, such
 * as closing a dialog. It is done unless the component was removed during the run.
 */
export function useAction<A extends unknown[]>(run: (...args: A) => Promise<(() => void) | void>): Action<A> {
  const [state, setState] = useState<{ busy: boolean; error?: unknown }>({ busy: false });
  const busy = useRef(false);
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);
  const act = async (...args: A) => {
    if (busy.current) return;
    busy.current = true;
    setState({ busy: true });
    try {
      const rest = await run(...args);
      setState({ busy: false });
      if (shown.current) rest?.();
    } catch (error) {
      setState({ busy: false, error });
    }
    busy.current = false;
  };
  return { ...state, act };
}
