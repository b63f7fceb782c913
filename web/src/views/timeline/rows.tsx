import { useRef, useState } from "preact/hooks";
import { Name } from "../../parts/small.tsx";
import { link } from "../../route.ts";
import { type Drawn, inWords } from "./lanes.ts";
import type { Scale } from "./scale.ts";
import { HIGH, Strip } from "./strip.tsx";

const ROW = HIGH + 4;
const SEEN = 520;
const MORE = 6;

interface Props {
  readonly lanes: readonly Drawn[];
  readonly scale: Scale;
  readonly names: number;
  readonly now: number;
  readonly cursor: number;
}

/** Only the lanes that are seen are in the page, and a few on either side of them. */
export function Rows({ lanes, scale, names, now, cursor }: Props) {
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const high = Math.min(SEEN, lanes.length * ROW + 4);
  const first = Math.max(0, Math.floor(top / ROW) - MORE);
  const last = Math.min(lanes.length, Math.ceil((top + high) / ROW) + MORE);
  const x = names + scale.x(cursor);
  return (
    <div ref={box} class="rows" style={{ height: `${high}px` }} tabIndex={0} role="region" aria-label={`Lanes of ${lanes.length} nodes`}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <div class="rows-all" style={{ height: `${lanes.length * ROW}px` }}>
        <svg class="cursor" width={names + scale.width} height={lanes.length * ROW} aria-hidden="true">
          {now >= scale.from && now <= scale.to && <line class="now" x1={names + scale.x(now)} x2={names + scale.x(now)} y1="0" y2="100%" />}
          <line x1={x} x2={x} y1="0" y2="100%" />
        </svg>
        <ol style={{ transform: `translateY(${first * ROW}px)` }}>
          {lanes.slice(first, last).map((lane, index) => (
            <li key={lane.key} class="row" style={{ height: `${ROW}px` }} aria-posinset={first + index + 1} aria-setsize={lanes.length}>
              <a class="row-name" style={{ width: `${names}px` }} href={link("fleet", lane.key)} title={lane.name} aria-label={lane.name}><Name of={lane.name} /></a>
              <Strip scale={scale} segments={lane.segments} foreseen={lane.foreseen} marks={lane.marks} now={now} label={`${lane.name}: ${inWords(lane)}`} />
            </li>
          ))}
        </ol>
      </div>
    </div>
  );
}
