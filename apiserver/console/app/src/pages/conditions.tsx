// The conditions of the Site object, which say whether it works.

import type { Client } from '../api/client';
import { instant } from '../dates';
import { useSite } from '../site';

export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason: string;
  message: string;
  changedAt: string;
}

/** loadConditions returns the conditions of the site. */
export async function loadConditions(client: Client): Promise<Condition[]> {
  return (await client.ahds('/site-status')).json.conditions;
}

/** faults are the conditions that are True while something is wrong. Reconciling is True while a change is applied. */
const faults = ['Stalled', 'StorageNearLimit'];

/** stateOfCondition says whether a condition is as it should be. */
export function stateOfCondition({ type, status }: Condition): 'good' | 'bad' | 'waiting' {
  if (status === 'Unknown') return 'waiting';
  if (type === 'Reconciling') return status === 'True' ? 'waiting' : 'good';
  return (status === 'True') === faults.includes(type) ? 'bad' : 'good';
}

const marks = { good: '●', bad: '▲', waiting: '◐' };

/** summaryOf is the state of the site in a sentence. */
function summaryOf(list: Condition[]): string {
  const bad = list.filter((c) => stateOfCondition(c) === 'bad').length;
  if (bad > 0) return `▲ ${bad} of ${list.length} conditions need attention.`;
  return list.some((c) => stateOfCondition(c) === 'waiting') ? '◐ The site is being set up.' : '● The site works.';
}

/** ordered puts what needs attention first, then Ready, which sums up the others. */
function ordered(list: Condition[]): Condition[] {
  const rank = (c: Condition) => (stateOfCondition(c) === 'bad' ? 0 : stateOfCondition(c) === 'waiting' ? 1 : c.type === 'Ready' ? 2 : 3);
  return [...list].sort((a, b) => rank(a) - rank(b) || a.type.localeCompare(b.type));
}

export function Conditions({ list }: { list: Condition[] }) {
  const { metadata } = useSite();
  if (list.length === 0) return <p class="quiet">No condition is reported yet.</p>;
  return (
    <>
      <p>
        <strong>{summaryOf(list)}</strong>
      </p>
      <ul class="plain conditions">
        {ordered(list).map((c) => (
          <li class={stateOfCondition(c)} data-condition={c.type}>
            <strong>
              {marks[stateOfCondition(c)]} {c.type}
            </strong>{' '}
            {c.status === 'Unknown' ? 'unknown' : c.status === 'True' ? 'yes' : 'no'}
            {stateOfCondition(c) !== 'good' && (
              <div>
                {c.reason}: {c.message}
              </div>
            )}
            <div class="quiet">since {instant(c.changedAt, metadata.zone)}</div>
          </li>
        ))}
      </ul>
    </>
  );
}
