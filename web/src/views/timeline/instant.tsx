import type { Forecast } from "../../forecast.ts";
import { Sign } from "../../parts/small.tsx";
import { link } from "../../route.ts";
import { TONE, TONES } from "../../values.ts";
import { instant, plural, relative } from "../../words.ts";
import { type Drawn, fleetAt } from "./lanes.ts";

const LISTED = 8;

interface Props {
  readonly lanes: readonly Drawn[];
  readonly forecast: Forecast | null;
  readonly at: number;
  readonly now: number;
  readonly since: number;
  readonly chosen: boolean;
}

/** The fleet at the instant of the slider: as it was, or what is foreseen until then. */
export function AtThatInstant({ lanes, forecast, at, now, since, chosen }: Props) {
  const title = chosen ? `The fleet at ${instant(at)}` : "The fleet now";
  return (
    <section class="at-instant" aria-label="The fleet at that instant">
      <h2>{title} {chosen && <span class="quiet number">{relative(at, now)}</span>}</h2>
      <div role="status">
        {at < since - 1000 ? <p class="quiet">This replica had not started.</p> : at <= now + 1000 ? <Was lanes={lanes} at={at} /> : <WillBe forecast={forecast} at={at} now={now} />}
      </div>
    </section>
  );
}

function Was({ lanes, at }: { lanes: readonly Drawn[]; at: number }) {
  const tones = fleetAt(lanes, at);
  const all = [...tones.values()].reduce((sum, some) => sum + some.length, 0);
  if (all === 0) return <p class="quiet">There was no node.</p>;
  return (
    <ul class="at-tones">
      <li><strong class="number">{plural(all, "node")}</strong></li>
      {TONES.filter((tone) => tones.has(tone)).map((tone) => {
        const some = tones.get(tone) ?? [];
        const calm = tone === "serving" || tone === "foreign";
        return (
          <li key={tone}>
            <Sign tone={tone} /> <span class="number">{some.length}</span> {TONE[tone].word}
            {!calm && <span class="quiet">: {some.slice(0, LISTED).map((one, index) => (
              <span key={one.key}>{index > 0 && ", "}<a href={link("fleet", one.key)}>{one.name}</a></span>
            ))}{some.length > LISTED && ` and ${some.length - LISTED} more`}</span>}
          </li>
        );
      })}
    </ul>
  );
}

function WillBe({ forecast, at, now }: { forecast: Forecast | null; at: number; now: number }) {
  if (forecast === null) return <p class="quiet">Not known yet.</p>;
  const until = (one: { at: string }): boolean => Date.parse(one.at) > now && Date.parse(one.at) <= at;
  const starts = forecast.starts.filter(until);
  const under = starts.filter((one) => one.endsAt === null || Date.parse(one.endsAt) > at);
  const expiries = forecast.expiries.filter(until);
  const names = [...new Set(starts.filter((one) => one.generation === 0).map((one) => one.claim))];
  return (
    <p>
      Foreseen until then: <strong>{plural(starts.length, "disruption")}</strong> {starts.length === 1 ? "starts" : "start"}, {under.length} under way at that instant; {plural(expiries.length, "node")} {expiries.length === 1 ? "expires" : "expire"}.
      {names.length > 0 && <> {names.slice(0, LISTED).map((name, index) => (
        <span key={name}>{index > 0 && ", "}<a href={link("fleet", `NodeClaim/${name}`)}>{name}</a></span>
      ))}{names.length > LISTED && ` and ${names.length - LISTED} more`} {names.length === 1 ? "is" : "are"} disrupted.</>}
    </p>
  );
}
