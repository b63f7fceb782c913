import { type NodeView, type Share, TONE } from "./values.ts";

const MICRO = 1_000_000;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

export function money(micro: number | null, digits = 2): string {
  if (micro === null) return "unknown";
  const dollars = micro / MICRO;
  const wanted = dollars !== 0 && Math.abs(dollars) < 0.1 ? 4 : digits;
  const shown = dollars.toLocaleString("en-US", { minimumFractionDigits: wanted, maximumFractionDigits: wanted });
  return `$${shown}`;
}

export function perHour(micro: number | null): string {
  return micro === null ? "price unknown" : `${money(micro)}/h`;
}

export function count(number: number): string {
  return number.toLocaleString("en-US");
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** As our messages write it: `2026-01-05T08:10:00Z`. */
export function instant(at: number | string): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? String(at) : `${date.toISOString().slice(0, 19)}Z`;
}

export function clockTime(at: number | string): string {
  return instant(at).slice(11);
}

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;

export function weekday(at: number): string {
  return DAYS[new Date(at).getUTCDay()] ?? "";
}

/** The time alone where the day is the same, else day and time. */
export function near(at: number | string, now: number): string {
  const told = instant(at);
  return told.slice(0, 10) === instant(now).slice(0, 10) ? told.slice(11) : `${told.slice(0, 10)} ${told.slice(11, 16)}Z`;
}

/** `4d20h`, `3m10s`, `45s`: at most two units. */
export function span(milliseconds: number): string {
  let seconds = Math.round(Math.abs(milliseconds) / SECOND);
  const parts: string[] = [];
  for (const [unit, size] of [["d", 86_400], ["h", 3600], ["m", 60], ["s", 1]] as const) {
    const many = Math.floor(seconds / size);
    seconds -= many * size;
    if (many > 0 || (parts.length > 0 && seconds > 0)) parts.push(`${many}${unit}`);
    if (parts.length === 2) break;
  }
  return parts.filter((part) => !part.startsWith("0")).join("") || "0s";
}

export function relative(at: number | string, now: number): string {
  const away = new Date(at).getTime() - now;
  if (Number.isNaN(away)) return "";
  if (Math.abs(away) < 1000) return "now";
  return away > 0 ? `in ${span(away)}` : `${span(away)} ago`;
}

export function cores(milli: number): string {
  return (milli / 1000).toLocaleString("en-US", { maximumFractionDigits: 1 });
}

export function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toLocaleString("en-US", { maximumFractionDigits: 1 })} GiB`;
}

export function percent(share: Share | null): number {
  if (share === null || share.allocatable <= 0) return 0;
  return Math.round((100 * share.requested) / share.allocatable);
}

/** Whether a node has the words that were typed, in any of its fields. */
export function matches(node: NodeView, words: readonly string[]): boolean {
  if (words.length === 0) return true;
  const text = [
    node.name, node.node, node.pool, node.zone, node.phase, node.tone, TONE[node.tone].word,
    node.instanceType, node.capacityType, node.reason,
  ].join(" ").toLowerCase();
  return words.every((word) => text.includes(word));
}

export function typed(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}
