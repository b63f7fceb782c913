import { useCalendar } from "../live/calendar.ts";
import { Problem, Waiting } from "../parts/small.tsx";
import { clockTime, instant, plural, span } from "../words.ts";
import { Days } from "./calendar/days.tsx";
import { NotInTime } from "./calendar/notintime.tsx";
import { Soon } from "./calendar/soon.tsx";
import { Budgets, Pools, Windows } from "./calendar/tables.tsx";

/** Two weeks: which nodes go when, which windows and budgets let them, and what cannot finish. */
export function Calendar() {
  const asked = useCalendar();
  const forecast = asked.value;
  if (forecast === null) {
    return <><h1>Calendar</h1>{asked.problem === "" ? <Waiting what="Following the calendar through two weeks" /> : <Problem text={asked.problem} again={asked.again} />}</>;
  }
  const { at, until, peak } = forecast;
  return (
    <>
      <h1>Calendar</h1>
      <p class="lead">
        What windows, budgets and expirations bring from <time class="number" dateTime={at}>{instant(at)}</time> until <time class="number" dateTime={until}>{instant(until)}</time> ({span(Date.parse(until) - Date.parse(at))}), if nothing else changes.
        {" "}As of <time class="number" dateTime={at}>{clockTime(at)}</time>.
        {peak.nodes > 0 && ` At most ${plural(peak.nodes, "node")} ${peak.nodes === 1 ? "is" : "are"} disrupted at once${peak.at === null ? "" : `, at ${instant(peak.at)}`}.`}
      </p>
      {asked.problem !== "" && <Problem text={`The calendar is of ${instant(at)}: ${asked.problem}`} again={asked.again} />}
      {forecast.notes.length > 0 && <ul class="notes" aria-label="What you have to know">{forecast.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
      <div class="calendar-top">
        <Soon forecast={forecast} />
        <NotInTime forecast={forecast} />
      </div>
      <Days forecast={forecast} />
      <div class="calendar-tables">
        <Windows forecast={forecast} />
        <Budgets forecast={forecast} />
        <Pools forecast={forecast} />
      </div>
    </>
  );
}
