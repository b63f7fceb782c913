import { Subject } from "../parts/small.tsx";
import type { Entry } from "../values.ts";
import { instant } from "../words.ts";

const DONE = "ok";

function failed({ outcome }: Entry): string {
  return outcome === undefined || outcome === DONE ? "" : outcome;
}

/** Entries of the journal, in the order in which they are given. `short`: all of them are of one subject. */
export function EntryLines({ entries, short = false }: { entries: readonly Entry[]; short?: boolean }) {
  return (
    <ol class={short ? "entries short" : "entries"}>
      {entries.map((entry, index) => (
        <li key={`${entry.at} ${entry.subject} ${entry.concern} ${index}`}>
          <time class="number" dateTime={entry.at}>{instant(entry.at)}</time>
          {!short && <Subject of={entry.subject} />}
          <span class="code">{entry.reason || entry.concern}</span>
          <span class="because">{[entry.because, failed(entry)].filter(Boolean).join(": ")}</span>
          {entry.action && <span class="chip">{entry.outcome === DONE ? `${entry.action} ${DONE}` : entry.action}</span>}
        </li>
      ))}
    </ol>
  );
}
