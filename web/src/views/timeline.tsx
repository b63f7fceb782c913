import { useMemo, useState } from "preact/hooks";
import type { Forecast } from "../forecast.ts";
import { useCalendar } from "../live/calendar.ts";
import { useAsked, useKnownUntil } from "../live/context.ts";
import { Filter, Select } from "../parts/filter.tsx";
import { Problem, Waiting } from "../parts/small.tsx";
import { useWidth } from "../parts/width.ts";
import { useRemembered } from "../remembered.ts";
import type { History } from "../values.ts";
import { DAY, HOUR, instant, near, plural, typed } from "../words.ts";
import { Axis, Bands } from "./timeline/axis.tsx";
import { AtThatInstant } from "./timeline/instant.tsx";
import { Rows } from "./timeline/rows.tsx";
import { type LaneOrder, drawn, ordered } from "./timeline/lanes.ts";
import { scale } from "./timeline/scale.ts";

const EVERY = 10_000;
const NAMES = 190;

type Range = "past" | "hour" | "day" | "two" | "week" | "fortnight";
const RANGES: readonly (readonly [Range, string])[] = [
  ["past", "Since this replica's start"],
  ["hour", "An hour back, an hour ahead"],
  ["two", "Since the start, 24 h ahead"],
  ["day", "24 h back, 24 h ahead"],
  ["week", "A week ahead"],
  ["fortnight", "Two weeks ahead"],
];
const ORDERS: readonly (readonly [LaneOrder, string])[] = [["next", "What changes first"], ["name", "Name"], ["pool", "Pool"]];

function around(range: Range, since: number, now: number): readonly [number, number] {
  const past = Math.min(since, now - 60_000);
  const room = (now - past) * 0.04;
  const spans: Readonly<Record<Range, readonly [number, number]>> = {
    past: [past - room, now + room],
    hour: [now - HOUR, now + HOUR],
    two: [past - room, now + DAY],
    day: [now - DAY, now + DAY],
    week: [Math.max(past, now - DAY), now + 7 * DAY],
    fortnight: [Math.max(past, now - DAY), now + 14 * DAY],
  };
  return spans[range];
}

/** One lane for each node: what was, since this replica's start, and what is foreseen. */
export function Timeline({ subject }: { subject: string }) {
  const history = useAsked<History>("/api/history", EVERY);
  const forecast = useCalendar();
  if (history.value === null) {
    return <><h1>Timeline</h1>{history.problem === "" ? <Waiting what="Reading the journal" /> : <Problem text={history.problem} again={history.again} />}</>;
  }
  return <Drawn history={history.value} forecast={forecast.value} problem={forecast.problem} subject={subject} />;
}

interface Props {
  readonly history: History;
  readonly forecast: Forecast | null;
  readonly problem: string;
  readonly subject: string;
}

function Drawn({ history, forecast, problem, subject }: Props) {
  const [text, setText] = useRemembered("timeline.filter", "");
  const [range, setRange] = useRemembered<Range>("timeline.range", "past");
  const [order, setOrder] = useRemembered<LaneOrder>("timeline.order", "next");
  const [place, width] = useWidth<HTMLDivElement>(900);
  const now = Math.max(Date.parse(history.at), useKnownUntil());
  const since = Date.parse(history.since);
  const [from, to] = around(range, since, now);
  const [chosen, setChosen] = useState<number | null>(null);
  const cursor = chosen === null ? now : Math.min(to, Math.max(from, chosen));
  const lanes = useMemo(() => drawn(history, forecast, now), [history, forecast]);
  const shown = useMemo(() => {
    const words = typed(text || (subject === "" ? "" : subject.split("/").at(-1) ?? ""));
    const has = (one: (typeof lanes)[number]): boolean => {
      const all = `${one.name} ${one.pool} ${one.segments.at(-1)?.phase ?? ""} ${one.segments.at(-1)?.reason ?? ""}`.toLowerCase();
      return words.every((word) => all.includes(word));
    };
    return ordered(lanes.filter(has), order);
  }, [lanes, text, subject, order]);
  const narrow = width < 620;
  const names = narrow ? 110 : NAMES;
  const wide = scale(from, to, width - names - 14);
  return (
    <>
      <h1>Timeline</h1>
      <p class="lead">
        {plural(shown.length, "node")} since this replica's start at <time class="number" dateTime={history.since}>{instant(history.since)}</time>
        {history.cut && "; the oldest entries are forgotten"}. What lies ahead is foreseen, as in the <a href="#/calendar">calendar</a>.
      </p>
      <div class="toolbar">
        <Filter label="Filter" hint="name, pool, phase, reason" value={text} set={setText} />
        <Select label="Show" all={RANGES} value={range} set={(value) => { setRange(value); setChosen(null); }} />
        <Select label="Sort by" all={ORDERS} value={order} set={setOrder} />
      </div>
      {problem !== "" && <Problem text={`What lies ahead is not known: ${problem}`} />}
      <div class="scrub">
        <label for="scrub">Time</label>
        <input id="scrub" type="range" min={from} max={to} step={Math.max(1000, Math.round((to - from) / 1000))} value={cursor}
          aria-valuetext={instant(cursor)} onInput={(event) => setChosen(Number(event.currentTarget.value))} />
        <output for="scrub" class="number">{near(cursor, now)}</output>
        <button type="button" disabled={chosen === null} onClick={() => setChosen(null)}>Now</button>
      </div>
      <AtThatInstant lanes={lanes} forecast={forecast} at={cursor} now={now} since={since} chosen={chosen !== null} />
      <section ref={place} class="chart" aria-label="Lanes">
        <Axis scale={wide} names={names} now={now} cursor={cursor} />
        {forecast !== null && to > now && <Bands forecast={forecast} scale={wide} names={names} />}
        {shown.length === 0 ? <p class="empty">No node matches the filter.</p> : <Rows lanes={shown} scale={wide} names={names} now={now} cursor={cursor} />}
      </section>
      <Key />
    </>
  );
}

function Key() {
  return (
    <p class="key quiet">
      <svg width="18" height="12" aria-hidden="true"><rect class="foreseen" x="1" y="1" width="16" height="10" rx="2" /></svg> foreseen disruption
      <svg width="12" height="12" aria-hidden="true"><path class="mark" d="M6 2l3.5 4l-3.5 4l-3.5 -4z" /></svg> something happened
      <svg width="12" height="12" aria-hidden="true"><path class="mark coming" d="M6 2l3.5 4l-3.5 4l-3.5 -4z" /></svg> foreseen
    </p>
  );
}
