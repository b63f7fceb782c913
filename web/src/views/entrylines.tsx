import { Subject } from "../parts/small.tsx";
import type { Entry } from "../values.ts";
import { instant } from "../words.ts";

/** Entries of the journal, in the order in which they are given. `short`: all of them are of one subject. */
export function EntryLines({ entries, short = false }: { entries: readonly Entry[]; short?: boolean }) {
  return (
    <ol class={short ? "entries short" : "entries"}>
      {entries.map((entry, index) => (
        <li key={`${entry.at} ${entry.subject} ${entry.concern} ${index}`}>
          <time class="number" dateTime={entry.at}>{instant(entry.at)}</time>
          {!short && <Subject of={entry.subject} />}
          <span class="code">{entry.reason || entry.concern}</span>
          <span class="because">{entry.because}{entry.outcome ? ` ${entry.outcome}` : ""}</span>
          {entry.action && <span class="chip">{entry.action}</span>}
        </li>
      ))}
    </ol>
  );
}
