import { type Mark, type Segment, TONE } from "../../values.ts";
import { instant } from "../../words.ts";
import type { Foreseen } from "./lanes.ts";
import type { Scale } from "./scale.ts";

export const HIGH = 22;
const BAR = 12;
const TOP = (HIGH - BAR) / 2;

interface Props {
  readonly scale: Scale;
  readonly segments: readonly Segment[];
  readonly foreseen: readonly Foreseen[];
  readonly marks: readonly Mark[];
  readonly now: number;
  readonly label: string;
}

/** One lane: segments as bars, marks as signs, what is foreseen as outlines. */
export function Strip({ scale, segments, foreseen, marks, now, label }: Props) {
  return (
    <svg class="strip" width={scale.width} height={HIGH} role="img" aria-label={label}>
      {segments.map((one) => <Piece key={one.begin} scale={scale} one={one} now={now} />)}
      {foreseen.map((one) => {
        const from = Math.max(one.from, scale.from);
        const to = Math.min(one.to, scale.to);
        if (to <= from) return null;
        const x = scale.x(from);
        return <rect key={one.from} class="foreseen" x={x} y={TOP + 0.5} width={Math.max(4, scale.x(to) - x)} height={BAR - 1} rx="2"><title>{one.what}</title></rect>;
      })}
      {marks.map((one, index) => <Point key={`${one.at} ${one.what} ${index}`} scale={scale} mark={one} />)}
    </svg>
  );
}

function Piece({ scale, one, now }: { scale: Scale; one: Segment; now: number }) {
  const from = Math.max(Date.parse(one.begin), scale.from);
  const to = Math.min(one.end === null ? now : Date.parse(one.end), scale.to);
  if (to < from) return null;
  const x = scale.x(from);
  const wide = Math.max(1.5, scale.x(to) - x);
  return (
    <g class={`piece tone-${one.tone}`}>
      <rect x={x} y={TOP} width={wide} height={BAR} rx="2"><title>{`${one.phase} from ${instant(one.begin)}${one.because === "" ? "" : `: ${one.because}`}`}</title></rect>
      {wide > 14 && <text x={x + 5} y={HIGH / 2} aria-hidden="true">{TONE[one.tone].sign}</text>}
    </g>
  );
}

function Point({ scale, mark }: { scale: Scale; mark: Mark }) {
  const at = Date.parse(mark.at);
  if (!(at >= scale.from && at <= scale.to)) return null;
  const x = scale.x(at);
  const title = `${mark.what} at ${instant(mark.at)}${mark.because === "" ? "" : `: ${mark.because}`}`;
  return (
    <path class={mark.foreseen ? "mark coming" : "mark"} d={`M${x} ${HIGH / 2 - 5}l4 5l-4 5l-4 -5z`}><title>{title}</title></path>
  );
}
