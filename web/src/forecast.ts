/** What `tenure forecast --json` prints: docs/forecast.md lists the fields. Those that the page reads. */

export interface ForecastWindow {
  readonly name: string;
  readonly type: string;
  readonly actions: readonly string[];
  readonly nodes: number;
  readonly active: boolean;
  readonly changes: readonly string[];
  /** Later changes are not listed. */
  readonly knownUntil: string;
  readonly never: boolean;
  readonly problem: string | null;
}

export interface ForecastBudget {
  readonly pool: string;
  readonly index: number;
  readonly nodes: string;
  readonly active: boolean;
  readonly changes: readonly string[];
}

export interface Start {
  readonly at: string;
  readonly pool: string;
  readonly reason: string;
  readonly claim: string;
  readonly generation: number;
  readonly dueAt: string;
  readonly endsAt: string | null;
  readonly replaced: boolean;
  readonly approximate: boolean;
}

export interface Rotation {
  readonly reason: string;
  readonly now: number;
  readonly due: number;
  /** Of those that are due: replacements that expire within the two weeks, too. */
  readonly again: number;
  readonly started: number;
  readonly late: number;
  readonly lateBySeconds: number;
  readonly waiting: number;
  readonly never: number;
  /** They start or wait for another reason. */
  readonly otherwise: number;
  readonly overdue: number;
  readonly longestWaitSeconds: number;
  readonly lastStart: string | null;
  readonly why: readonly { readonly nodes: number; readonly message: string }[];
}

export interface Peak {
  readonly nodes: number;
  readonly at: string | null;
}

export interface ForecastPool {
  readonly name: string;
  readonly nodes: number;
  readonly launchSeconds: number | null;
  readonly peak: Peak;
  readonly rotations: readonly Rotation[];
  readonly problem: string | null;
}

export interface Forecast {
  readonly at: string;
  readonly until: string;
  readonly windows: readonly ForecastWindow[];
  readonly budgets: readonly ForecastBudget[];
  readonly expiries: readonly { readonly at: string; readonly pool: string; readonly claim: string }[];
  readonly moments: readonly { readonly at: string; readonly kind: string; readonly subject: string; readonly message: string }[];
  readonly starts: readonly Start[];
  readonly pools: readonly ForecastPool[];
  readonly peak: Peak;
  readonly notes: readonly string[];
}

export interface Period {
  readonly from: number;
  readonly to: number;
}

/** Periods that are drawn as one. */
export interface Merged extends Period {
  readonly many: number;
}

/** When something with `active` and `changes` is on, within a span. */
export function periods(one: { active: boolean; changes: readonly string[] }, from: number, to: number): Period[] {
  const found: Period[] = [];
  let on = one.active;
  let since = from;
  for (const change of one.changes) {
    const at = Date.parse(change);
    if (on) found.push({ from: since, to: Math.min(at, to) });
    on = !on;
    since = at;
    if (at > to) break;
  }
  if (on && since < to) found.push({ from: since, to });
  return found.filter((period) => period.to > from && period.from < to);
}

/** As many changes as the forecast lists of a budget. */
const CHANGES_MAX = 1000;

/** Until when the changes are all listed: after it nothing is drawn. */
export function listedUntil(one: ForecastWindow | ForecastBudget, until: number): number {
  if ("knownUntil" in one) return Math.min(until, Date.parse(one.knownUntil));
  const last = one.changes[CHANGES_MAX - 1];
  return last === undefined ? until : Math.min(until, Date.parse(last));
}

/** What is seen of periods where a pixel is so long: nearer ones are drawn as one, so that their number is bounded by the width. */
export function merged(all: readonly Period[], pixel: number): Merged[] {
  const found: { from: number; to: number; many: number }[] = [];
  for (const one of all) {
    const last = found.at(-1);
    if (last !== undefined && one.from - last.to < pixel) {
      last.to = Math.max(last.to, one.to);
      last.many += 1;
    } else found.push({ ...one, many: 1 });
  }
  return found;
}

/** The first instant after this one at which the forecast has something; Infinity: none. */
export function nextChange(forecast: Forecast, now: number): number {
  const changes = [...forecast.windows, ...forecast.budgets].flatMap((one) => one.changes);
  const instants = [...changes, ...[...forecast.starts, ...forecast.expiries, ...forecast.moments].map((one) => one.at)];
  return instants.reduce((least, one) => {
    const at = Date.parse(one);
    return at > now ? Math.min(least, at) : least;
  }, Infinity);
}

/** Not in time, as `tenure forecast` counts it. */
export function notInTime(rotation: Rotation): boolean {
  return rotation.late > 0 || rotation.never > 0 || rotation.overdue > 0;
}
