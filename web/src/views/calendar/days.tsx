import { useMemo } from "preact/hooks";
import { type Forecast, type Period, listedUntil, merged, periods } from "../../forecast.ts";
import { useWidth } from "../../parts/width.ts";
import { DAY, HOUR, instant, plural, weekday } from "../../words.ts";

const LANE = 9;
const SHOWN = 8;
const SPOKEN = 6;

interface Row {
  readonly name: string;
  readonly blocks: boolean;
  readonly on: readonly Period[];
}

interface Day {
  readonly begin: number;
  readonly starts: Forecast["starts"];
  readonly expiries: number;
  readonly protections: number;
}

function days(forecast: Forecast): Day[] {
  const first = Math.floor(Date.parse(forecast.at) / DAY) * DAY;
  const until = Date.parse(forecast.until);
  const found: Day[] = [];
  for (let begin = first; begin < until && found.length < 15; begin += DAY) {
    const on = (one: { at: string }): boolean => Date.parse(one.at) >= begin && Date.parse(one.at) < begin + DAY;
    found.push({
      begin,
      starts: forecast.starts.filter(on),
      expiries: forecast.expiries.filter(on).length,
      protections: forecast.moments.filter((one) => one.kind === "protection ends" && on(one)).length,
    });
  }
  return found;
}

function listed(forecast: Forecast): Row[] {
  const [from, to] = [Date.parse(forecast.at), Date.parse(forecast.until)];
  return [
    ...forecast.windows.filter((one) => one.problem === null).map((one) => ({ name: `${one.type} ${one.name}`, blocks: one.type === "Block", one })),
    ...forecast.budgets.map((one) => ({ name: `budget ${one.pool}: ${one.nodes}`, blocks: /^0%?$/.test(one.nodes), one })),
  ].slice(0, SHOWN).map(({ name, blocks, one }) => {
    const end = listedUntil(one, to);
    return { name: end < to ? `${name} (known until ${instant(end)})` : name, blocks, on: periods(one, from, end) };
  });
}

/** A line for each day, with the hours in which windows and budgets are active, and how many nodes are disrupted. */
export function Days({ forecast }: { forecast: Forecast }) {
  const [place, wide] = useWidth<HTMLDivElement>(900);
  const rows = useMemo(() => listed(forecast), [forecast]);
  const all = useMemo(() => days(forecast), [forecast]);
  const hours = Math.max(160, wide < 700 ? wide - 16 : wide - 184 - 28 - 300);
  return (
    <section class="card" aria-label="Two weeks">
      <h2>Two weeks <span class="quiet">in UTC</span></h2>
      <ul class="legend" aria-label="Lines of each day, from above">
        {rows.map((row) => <li key={row.name}><svg width="14" height="8" aria-hidden="true"><rect class={row.blocks ? "band blocks" : "band"} y="1" width="14" height="6" rx="1.5" /></svg> {row.name}</li>)}
        <li><svg width="10" height="8" aria-hidden="true"><path class="go" d="M1 1h8l-4 6z" /></svg> a node is disrupted</li>
      </ul>
      <div ref={place}>
        <svg class="hour-names" width={hours} height="14" aria-hidden="true">
          {[0, 6, 12, 18].map((hour) => <text key={hour} x={Math.round((hour / 24) * hours)} y="11">{`${String(hour).padStart(2, "0")}:00`}</text>)}
        </svg>
        <ol class="days">
          {all.map((day) => <OneDay key={day.begin} day={day} rows={rows} forecast={forecast} hours={hours} />)}
        </ol>
      </div>
    </section>
  );
}

function OneDay({ day, rows, forecast, hours }: { day: Day; rows: readonly Row[]; forecast: Forecast; hours: number }) {
  const { begin } = day;
  const name = weekday(begin);
  const weekend = name === "Saturday" || name === "Sunday";
  return (
    <li class={weekend ? "day weekend" : "day"}>
      <h3><time dateTime={instant(begin).slice(0, 10)}><span class="number">{instant(begin).slice(0, 10)}</span> <span class="quiet">{name}</span></time></h3>
      <Hours day={day} rows={rows} forecast={forecast} wide={hours} />
      <p class="day-says">{said(day)}</p>
    </li>
  );
}

function said(day: Day): string {
  const byPool = new Map<string, number>();
  for (const start of day.starts) {
    const what = `${start.pool}, ${start.reason}`;
    byPool.set(what, (byPool.get(what) ?? 0) + 1);
  }
  const pools = [...byPool].map(([what, many]) => `${many} of ${what}`);
  const disrupted = pools.length === 0 ? "" : `${plural(day.starts.length, "node is disrupted", "nodes are disrupted")} (${pools.join("; ")})`;
  const others = [
    day.expiries > 0 ? plural(day.expiries, "node expires", "nodes expire") : "",
    day.protections > 0 ? plural(day.protections, "protection ends", "protections end") : "",
  ];
  return [disrupted, ...others].filter(Boolean).join("; ") || "No node is disrupted";
}

/** The first of them, and how many more there are. */
function spoken(on: readonly Period[]): string {
  const first = on.slice(0, SPOKEN).map((one) => `${instant(one.from).slice(11, 16)} to ${instant(one.to).slice(11, 16)}`).join(", ");
  const last = on.at(-1);
  return on.length <= SPOKEN || last === undefined ? first : `${first} and ${plural(on.length - SPOKEN, "more period")}, the last until ${instant(last.to).slice(11, 16)}`;
}

/** Disruptions that start at the same pixel have one sign. */
function together(starts: Day["starts"], x: (at: number) => number): [number, Day["starts"][number][]][] {
  const found = new Map<number, Day["starts"][number][]>();
  for (const start of starts) {
    const at = Math.round(x(Date.parse(start.at)));
    const same = found.get(at);
    if (same === undefined) found.set(at, [start]);
    else same.push(start);
  }
  return [...found];
}

function titled(starts: Day["starts"]): string {
  const first = starts.slice(0, SPOKEN).map((start) => `${start.claim}: ${start.reason} at ${start.at}`).join("; ");
  return starts.length <= SPOKEN ? first : `${first}; and ${plural(starts.length - SPOKEN, "more disruption")}`;
}

function Hours({ day, rows, forecast, wide }: { day: Day; rows: readonly Row[]; forecast: Forecast; wide: number }) {
  const { begin } = day;
  const high = Math.max(20, rows.length * LANE + 14);
  const known = Math.max(begin, Date.parse(forecast.at));
  const end = Math.min(begin + DAY, Date.parse(forecast.until));
  const x = (at: number): number => Math.round(((at - begin) / DAY) * wide * 10) / 10;
  const spans = rows.map((row) => ({ row, on: row.on.map((one) => ({ from: Math.max(one.from, known), to: Math.min(one.to, end) })).filter((one) => one.to > one.from) }));
  const pixel = DAY / wide;
  const told = spans.filter((one) => one.on.length > 0).map(({ row, on }) => `${row.name} active ${spoken(on)}`);
  return (
    <svg class="hours" width={wide} height={high} role="img" aria-label={told.length === 0 ? "no window and no budget is active" : told.join("; ")}>
      <rect class="hours-back" x={x(known)} width={Math.max(0, x(end) - x(known))} height={high} />
      {[6, 12, 18].map((hour) => <line key={hour} x1={x(begin + hour * HOUR)} x2={x(begin + hour * HOUR)} y2={high} />)}
      {spans.map(({ row, on }, index) => merged(on, pixel).map((one) => (
        <rect key={`${row.name} ${one.from}`} class={row.blocks ? "band blocks" : "band"} x={x(one.from)} y={index * LANE + 3} width={Math.max(2, x(one.to) - x(one.from))} height={LANE - 3} rx="1.5">
          <title>{`${row.name}: ${one.many > 1 ? `${one.many} periods, ` : ""}${instant(one.from)} to ${instant(one.to)}`}</title>
        </rect>
      )))}
      {together(day.starts, x).map(([at, starts]) => (
        <path key={at} class="go" d={`M${at - 3} ${high - 9}h6l-3 6z`}><title>{titled(starts)}</title></path>
      ))}
    </svg>
  );
}
