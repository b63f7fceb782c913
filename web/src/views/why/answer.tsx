import { Blockers } from "../fleet/detail.tsx";
import { Subject, When } from "../../parts/small.tsx";
import { link } from "../../route.ts";
import type { BlockerView } from "../../values.ts";
import { instant } from "../../words.ts";

interface Verdict {
  readonly subject: string;
  readonly concern: string | null;
  readonly reason: string | null;
  readonly message: string;
  readonly blockers: readonly BlockerView[];
  readonly action: string | null;
  readonly advice: string;
  readonly recheckAt: string | null;
}

/** What `tenure explain --json` prints, with its lines as `text`. Those fields that the page reads. */
export interface Explained extends Verdict {
  readonly at: string;
  readonly leader: string | null;
  readonly held: string | null;
  readonly state: string;
  readonly savesPerHour?: number;
  readonly also: readonly Verdict[];
  readonly around: readonly Verdict[];
  readonly smallestChanges?: readonly { readonly message: string }[];
  readonly text: string;
}

const NODES = ["NodeClaim/", "Node/"];
const AROUND = 60;
const ADVICE = 5;

export function Answer({ subject, said }: { subject: string; said: Explained }) {
  return (
    <article class="answer" aria-label={subject}>
      <header>
        <h2>{subject}</h2>
        <p class="lead">{said.state}</p>
        <p class="quiet">
          As of <time class="number" dateTime={said.at}>{instant(said.at)}</time>{said.leader !== null && ` · ${said.leader}`}
          {NODES.some((kind) => subject.startsWith(kind)) && <> · <a href={link("fleet", subject)}>in the fleet</a> · <a href={link("timeline", subject)}>in the timeline</a></>}
        </p>
      </header>
      {said.held !== null && <p class="problem">{said.held}</p>}
      <One verdict={said} governing />
      <Changes advice={advised(said)} />
      {said.savesPerHour ? <p>Consolidation would save ${said.savesPerHour.toFixed(4)} an hour.</p> : null}
      <Others title="Other verdicts" verdicts={said.also} />
      <Others title="Verdicts on related objects" verdicts={said.around} />
      <details class="as-text">
        <summary>As <code>tenure explain</code> prints it</summary>
        <pre tabIndex={0}>{said.text}</pre>
      </details>
    </article>
  );
}

/** What would place a pod, then what each verdict advises: each sentence once. */
function advised(said: Explained): string[] {
  const smallest = said.smallestChanges?.map((one) => one.message) ?? [];
  const advice = [said, ...said.also, ...said.around].map((one) => one.advice);
  return [...new Set([...smallest, ...advice.filter((one) => one !== "")])];
}

function Changes({ advice }: { advice: readonly string[] }) {
  if (advice.length === 0) return null;
  return (
    <section class="card change" aria-label="What to change">
      <h3>What to change</h3>
      <ul>{advice.slice(0, ADVICE).map((one) => <li key={one}>{one}</li>)}</ul>
    </section>
  );
}

function One({ verdict, governing = false }: { verdict: Verdict; governing?: boolean }) {
  return (
    <section class={governing ? "card verdict governing" : "card verdict"} aria-label={verdict.reason ?? verdict.subject}>
      {!governing && <h4><Subject of={verdict.subject} /></h4>}
      <p class="verdict-head">
        {verdict.reason !== null && <span class="code">{verdict.reason}</span>}
        {verdict.concern !== null && <span class="quiet">{verdict.concern}</span>}
        {verdict.action !== null && <span class="chip">{verdict.action}</span>}
      </p>
      <p class="message">{verdict.message}</p>
      {verdict.recheckAt !== null && <p class="quiet">Next change: <When at={verdict.recheckAt} /></p>}
      {verdict.blockers.length > 0 && <Blockers blockers={verdict.blockers} />}
    </section>
  );
}

function Others({ title, verdicts }: { title: string; verdicts: readonly Verdict[] }) {
  if (verdicts.length === 0) return null;
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <div class="verdicts">{verdicts.slice(0, AROUND).map((one, index) => <One key={index} verdict={one} />)}</div>
      {verdicts.length > AROUND && <p class="quiet">{verdicts.length - AROUND} more: see the text.</p>}
    </section>
  );
}
