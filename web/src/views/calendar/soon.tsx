import type { Forecast, Start } from "../../forecast.ts";
import { Subject, When } from "../../parts/small.tsx";
import { link } from "../../route.ts";
import { DAY, clockTime, plural } from "../../words.ts";

const LISTED = 40;

/** The nodes that are disrupted within 24 hours, by name. */
export function Soon({ forecast }: { forecast: Forecast }) {
  const begin = Date.parse(forecast.at);
  const soon = forecast.starts.filter((one) => Date.parse(one.at) < begin + DAY);
  const there = new Set(soon.filter((one) => one.generation === 0).map((one) => one.claim));
  return (
    <section class="card" aria-label="The next 24 hours">
      <h2>The next 24 hours</h2>
      {soon.length === 0
        ? <p>No node is disrupted.</p>
        : <p><strong class="number">{plural(there.size, "node")}</strong> {there.size === 1 ? "is" : "are"} disrupted{soon.length > there.size && `; replacements are disrupted ${plural(soon.length - there.size, "time")}`}:</p>}
      <ol class="lines">
        {soon.slice(0, LISTED).map((one) => <Line key={`${one.claim} ${one.at} ${one.generation}`} start={one} />)}
      </ol>
      {soon.length > LISTED && <p class="quiet">{plural(soon.length - LISTED, "more disruption")} not listed.</p>}
    </section>
  );
}

function Line({ start }: { start: Start }) {
  return (
    <li>
      <When at={start.at} />
      {start.generation === 0 ? <a href={link("fleet", `NodeClaim/${start.claim}`)}>{start.claim}</a> : <span>the replacement of {start.claim}</span>}
      <span class="code">{start.reason}</span>
      <span class="quiet">
        NodePool <Subject of={`NodePool/${start.pool}`}>{start.pool}</Subject>
        {start.replaced && ", a new node comes first"}
        {start.endsAt === null ? ", its drain has no end" : `, gone at ${clockTime(start.endsAt)}`}
        {start.approximate && ", about"}
      </span>
    </li>
  );
}
