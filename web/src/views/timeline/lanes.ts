import type { Forecast } from "../../forecast.ts";
import type { History, Lane, Mark, Segment, Tone } from "../../values.ts";
import { instant } from "../../words.ts";

/** A lane as it is drawn: the past of the journal, then what is foreseen. */
export interface Drawn {
  readonly key: string;
  readonly name: string;
  readonly pool: string;
  readonly segments: readonly Segment[];
  readonly foreseen: readonly Foreseen[];
  readonly marks: readonly Mark[];
  /** The next instant at which something is foreseen; Infinity: none. */
  readonly next: number;
}

export interface Foreseen {
  readonly from: number;
  /** Infinity: its drain has no end. */
  readonly to: number;
  readonly what: string;
}

export function drawn(history: History, forecast: Forecast | null, now: number): Drawn[] {
  const coming = forecast === null ? new Map<string, Coming>() : foreseen(forecast);
  return history.lanes.map((lane) => {
    const more = coming.get(lane.key);
    const marks = [...lane.marks, ...(more?.marks ?? [])];
    const instants = [...marks.map((mark) => Date.parse(mark.at)), ...(more?.starts ?? []).map((start) => start.from)];
    const next = instants.reduce((least, at) => (at > now ? Math.min(least, at) : least), Infinity);
    return { key: lane.key, name: lane.name, pool: lane.pool, segments: lane.segments, foreseen: more?.starts ?? [], marks, next };
  });
}

interface Coming {
  readonly starts: Foreseen[];
  readonly marks: Mark[];
}

/** By the key of a lane. What is foreseen of nodes that do not exist yet has no lane. */
function foreseen(forecast: Forecast): Map<string, Coming> {
  const found = new Map<string, Coming>();
  const of = (key: string): Coming => {
    let one = found.get(key);
    if (one === undefined) found.set(key, (one = { starts: [], marks: [] }));
    return one;
  };
  for (const start of forecast.starts) {
    if (start.generation > 0) continue;
    const to = start.endsAt === null ? Infinity : Date.parse(start.endsAt);
    of(`NodeClaim/${start.claim}`).starts.push({ from: Date.parse(start.at), to, what: `${start.reason}: disruption starts at ${start.at}` });
  }
  for (const expiry of forecast.expiries) {
    of(`NodeClaim/${expiry.claim}`).marks.push({ at: expiry.at, what: "expires", because: "", foreseen: true });
  }
  for (const moment of forecast.moments) {
    of(moment.subject).marks.push({ at: moment.at, what: moment.kind, because: moment.message, foreseen: true });
  }
  return found;
}

/** What the lane was at an instant; null: the node was not there. */
export function phaseAt(lane: { readonly segments: readonly Segment[] }, at: number): { phase: string; tone: Tone } | null {
  for (let index = lane.segments.length - 1; index >= 0; index -= 1) {
    const segment = lane.segments[index];
    if (segment === undefined || Date.parse(segment.begin) > at) continue;
    return segment.end === null || Date.parse(segment.end) > at ? segment : null;
  }
  return null;
}

/** The lane in words, for those who do not see it. */
export function inWords(lane: Drawn | Lane): string {
  const past = lane.segments.map((one) => `${one.phase} from ${instant(one.begin)}${one.end ? ` to ${instant(one.end)}` : ""}`);
  const marks = lane.marks.map((one) => `${one.what} at ${instant(one.at)}${one.foreseen ? " (foreseen)" : ""}`);
  const coming = "foreseen" in lane ? lane.foreseen.map((one) => one.what) : [];
  return [...past.slice(-6), ...marks.slice(-6), ...coming].join("; ") || "nothing is known yet";
}

export type LaneOrder = "next" | "name" | "pool";

export function ordered(lanes: readonly Drawn[], order: LaneOrder): Drawn[] {
  const name = (one: Drawn, other: Drawn): number => (one.name < other.name ? -1 : 1);
  const compare: Readonly<Record<LaneOrder, (one: Drawn, other: Drawn) => number>> = {
    name,
    pool: (one, other) => (one.pool === other.pool ? name(one, other) : one.pool < other.pool ? -1 : 1),
    next: (one, other) => (one.next === other.next ? name(one, other) : one.next - other.next),
  };
  return [...lanes].sort(compare[order]);
}

/** Tones of all nodes at an instant that has passed. */
export function fleetAt(lanes: readonly Drawn[], at: number): Map<Tone, Drawn[]> {
  const found = new Map<Tone, Drawn[]>();
  for (const lane of lanes) {
    const phase = phaseAt(lane, at);
    if (phase === null) continue;
    const same = found.get(phase.tone);
    if (same === undefined) found.set(phase.tone, [lane]);
    else same.push(lane);
  }
  return found;
}

