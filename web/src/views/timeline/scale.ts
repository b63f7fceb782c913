import { DAY, HOUR, clockTime, instant } from "../../words.ts";

/** From instants to places, and back. */
export interface Scale {
  readonly from: number;
  readonly to: number;
  readonly width: number;
  readonly x: (at: number) => number;
}

export function scale(from: number, to: number, width: number): Scale {
  const each = width / Math.max(1, to - from);
  return { from, to, width, x: (at) => Math.round((at - from) * each * 10) / 10 };
}

const MINUTE = HOUR / 60;
const STEPS = [
  10_000, 30_000, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR,
  DAY, 2 * DAY, 7 * DAY, 28 * DAY,
];

export interface Tick {
  readonly at: number;
  readonly text: string;
}

/** Round instants, of UTC, with room for their words. */
export function ticks({ from, to, width }: Scale): Tick[] {
  const room = Math.max(2, Math.floor(width / 84));
  const step = STEPS.find((one) => (to - from) / one <= room) ?? 28 * DAY;
  const found: Tick[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const midnight = at % DAY === 0;
    const text = midnight ? instant(at).slice(5, 10) : step < MINUTE ? clockTime(at).slice(0, 8) : clockTime(at).slice(0, 5);
    found.push({ at, text });
  }
  return found;
}
