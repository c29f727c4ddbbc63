// Graphs of the last hour: one column for each minute, the latest at the right.

import type { ComponentChildren } from 'preact';

/** width and height are those of the coordinates, which the browser stretches. */
const width = 600;
const height = 60;

export interface Column {
  /** parts are stacked, the first at the bottom. */
  parts: { value: number; class: string }[];
}

/** Bars shows numbers as columns. label says what they are, for people who do not see the graph. */
export function Bars({ columns, label, children }: { columns: Column[]; label: string; children: ComponentChildren }) {
  const total = (column: Column) => column.parts.reduce((sum, part) => sum + part.value, 0);
  const most = Math.max(...columns.map(total), 1);
  const step = width / columns.length;
  return (
    <Figure label={label} most={most.toLocaleString()} caption={children}>
      {columns.map((column, i) => {
        let top = height;
        return column.parts.map((part) => {
          const tall = (part.value / most) * height;
          top -= tall;
          return part.value > 0 && <rect class={part.class} x={i * step + 1} y={top} width={step - 2} height={tall} />;
        });
      })}
    </Figure>
  );
}

export interface Line {
  class: string;
  values: (number | undefined)[];
}

/** Lines shows values as lines. Where a value is undefined, the line is interrupted. */
export function Lines({ lines, label, unit, children }: { lines: Line[]; label: string; unit: string; children: ComponentChildren }) {
  const most = Math.max(...lines.flatMap((line) => line.values.map((value) => value ?? 0)), 1);
  return (
    <Figure label={label} most={`${Math.round(most).toLocaleString()} ${unit}`} caption={children}>
      {lines.map((line) => (
        <path class={line.class} d={pathOf(line.values, most)} />
      ))}
    </Figure>
  );
}

/** pathOf returns the path of a line. A value between two missing ones is a short horizontal stroke. */
function pathOf(values: (number | undefined)[], most: number): string {
  const step = width / values.length;
  let path = '';
  values.forEach((value, i) => {
    if (value === undefined) return;
    const y = height - 1 - (value / most) * (height - 2);
    path += values[i - 1] === undefined ? `M${i * step} ${y}H${(i + 1) * step}` : `L${(i + 0.5) * step} ${y}H${(i + 1) * step}`;
  });
  return path;
}

function Figure({ label, most, caption, children }: { label: string; most: string; caption: ComponentChildren; children: ComponentChildren }) {
  return (
    <figure class="graph">
      <div class="scale" aria-hidden="true">
        <span>{most}</span>
      </div>
      <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={label}>
        {children}
      </svg>
      <div class="scale" aria-hidden="true">
        <span>an hour ago</span>
        <span>now</span>
      </div>
      <figcaption>{caption}</figcaption>
    </figure>
  );
}

/** Key shows the colour of a part of a graph next to its name. */
export function Key({ class: name, children }: { class: string; children: ComponentChildren }) {
  return (
    <span class="key">
      <svg viewBox="0 0 10 10" aria-hidden="true">
        <rect class={name} width="10" height="10" />
      </svg>{' '}
      {children}
    </span>
  );
}
