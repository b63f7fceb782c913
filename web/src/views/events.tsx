import { useMemo, useState } from "preact/hooks";
import { useAsked, useStore } from "../live/context.ts";
import { ENTRIES_ASKED } from "../live/store.ts";
import { Filter } from "../parts/filter.tsx";
import { useRemembered } from "../remembered.ts";
import { go } from "../route.ts";
import type { Entry } from "../values.ts";
import { instant, plural, typed } from "../words.ts";
import { EntryLines } from "./entrylines.tsx";

const PAGE = 150;

/** The journal, newest first: what was concluded, and what became of what was done. */
export function Events({ subject }: { subject: string }) {
  const store = useStore();
  const [text, setText] = useRemembered("events.filter", "");
  const [paused, setPaused] = useState<readonly Entry[] | null>(null);
  const [many, setMany] = useState(PAGE);
  const one = useAsked<Entry[]>(subject === "" ? "" : `/api/entries?limit=${ENTRIES_ASKED}&subject=${encodeURIComponent(subject)}`, 10_000);
  const known = subject !== "" ? (one.value ?? []) : (paused ?? store.entries);
  const shown = useMemo(() => {
    const words = typed(text);
    return [...known].reverse().filter((entry) => {
      const all = `${entry.subject} ${entry.reason} ${entry.concern} ${entry.because} ${entry.action ?? ""} ${entry.outcome ?? ""}`.toLowerCase();
      return words.every((word) => all.includes(word));
    });
  }, [known, text]);
  const since = paused === null ? 0 : store.entries.filter((entry) => entry.at > (paused.at(-1)?.at ?? "")).length;
  return (
    <>
      <h1>Events</h1>
      <Lead about={subject === "" ? "" : ` about ${subject}`} known={known} />
      <div class="toolbar">
        <Filter label="Filter" hint="object, reason, words" value={text} set={setText} />
        {subject === ""
          ? <button type="button" aria-pressed={paused !== null} onClick={() => setPaused(paused === null ? store.entries : null)}>{paused === null ? "Pause" : "Go on"}</button>
          : <button type="button" onClick={() => go("events")}>Of all objects</button>}
        <p class="quiet number" role="status">{paused === null ? plural(shown.length, "entry", "entries") : `Paused; ${plural(since, "newer entry", "newer entries")}`}</p>
      </div>
      {shown.length === 0 ? <p class="empty">{known.length === 0 ? "No entry yet." : "No entry matches the filter."}</p> : <EntryLines entries={shown.slice(0, many)} />}
      {many < shown.length && <button type="button" onClick={() => setMany(many + 2 * PAGE)}>Show more</button>}
    </>
  );
}

/** More than one answer has: what is older was left out, by the server or here. */
function Lead({ about, known }: { about: string; known: readonly Entry[] }) {
  const cut = known.length >= ENTRIES_ASKED;
  return (
    <p class="lead">
      What was concluded and done{about} since {cut ? <time class="number">{instant(known[0]?.at ?? "")}</time> : "this replica's start"}, newest first.
      {cut && " Older entries are left out here."}
    </p>
  );
}
