import { useEffect, useRef } from "preact/hooks";
import { useAsked, useNow, useStore } from "../../live/context.ts";
import { Bar, Fact, Phase, Subject, When } from "../../parts/small.tsx";
import { link } from "../../route.ts";
import type { BlockerView, Entry, History, NodeView } from "../../values.ts";
import { cores, gibibytes, instant, perHour, plural, span } from "../../words.ts";
import { OneLane } from "../timeline/onelane.tsx";
import { EntryLines } from "../entrylines.tsx";

interface Props {
  readonly subject: string;
  readonly node: NodeView | undefined;
  readonly close: () => void;
}

const LANES_EVERY = 15_000;
const ENTRIES_MAX = 50;

/** Everything about one node, beside the others. */
export function Detail({ subject, node, close }: Props) {
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    title.current?.focus({ preventScroll: true });
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || /^(INPUT|SELECT)$/.test((event.target as HTMLElement).tagName)) return;
      close();
      document.querySelector<HTMLElement>('.cell[tabindex="0"]')?.focus();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [subject]);
  return (
    <aside class="detail" aria-label={`Node ${subject}`}>
      <div class="detail-head">
        <h2 ref={title} tabIndex={-1}>{node?.name ?? subject}</h2>
        <button type="button" onClick={close}>Close</button>
      </div>
      {node === undefined ? <p>There is no such node now. <Subject of={subject}>What is known of it</Subject></p> : <Known node={node} />}
      <Past subject={subject} />
    </aside>
  );
}

function Known({ node }: { node: NodeView }) {
  const now = useNow();
  return (
    <>
      <p class="detail-phase"><Phase tone={node.tone} phase={node.phase} /> <span class="code">{node.reason}</span></p>
      <p class="because">{node.because}</p>
      <p><a class="button" href={link("why", node.key)}>Why?</a></p>
      {node.blockers.length > 0 && <Blockers blockers={node.blockers} />}
      {node.moreBlockers > 0 && <p class="quiet">{plural(node.moreBlockers, "more blocker")}: see Why.</p>}
      <dl class="facts">
        {(node.next !== "" || node.nextAt !== null) && <Fact name="Next change">{node.next} <When at={node.nextAt} /></Fact>}
        {node.deadline !== null && <Fact name="Deadline"><When at={node.deadline} /></Fact>}
        {node.node !== "" && node.node !== node.name && <Fact name="Node"><Subject of={`Node/${node.node}`}>{node.node}</Subject></Fact>}
        {node.pool !== "" && <Fact name="NodePool"><Subject of={`NodePool/${node.pool}`}>{node.pool}</Subject></Fact>}
        <Fact name="Zone">{node.zone || "none yet"}</Fact>
        <Fact name="Instance type">{node.instanceType || "none yet"}{node.capacityType !== "" && `, ${node.capacityType}`}</Fact>
        <Fact name="Price">{perHour(node.price)}</Fact>
        <Fact name="Created"><time class="number" dateTime={node.createdAt}>{instant(node.createdAt)}</time> <span class="quiet">({span(now - Date.parse(node.createdAt))} old)</span></Fact>
        <Fact name="Pods"><span class="number">{node.pods}</span></Fact>
      </dl>
      <Bar name="CPU" share={node.cpu} said={cores} />
      <Bar name="Memory" share={node.memory} said={gibibytes} />
    </>
  );
}

export function Blockers({ blockers }: { blockers: readonly BlockerView[] }) {
  return (
    <section aria-label="Blockers">
      <h3>What blocks it</h3>
      <ul class="blockers">
        {together(blockers).map(({ one, times }) => (
          <li key={`${one.subject} ${one.message} ${one.until}`}>
            <span class="because">{one.message}{times > 1 && <span class="quiet"> ({times} pods)</span>}</span>
            <span class="blocker-foot"><Subject of={one.subject} /> <Ends blocker={one} /></span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** One PDB blocks each pod that it is about, in the same words. */
function together(blockers: readonly BlockerView[]): { one: BlockerView; times: number }[] {
  const found = new Map<string, { one: BlockerView; times: number }>();
  for (const one of blockers) {
    const key = JSON.stringify([one.subject, one.message, one.until]);
    const same = found.get(key);
    if (same === undefined) found.set(key, { one, times: 1 });
    else same.times += 1;
  }
  return [...found.values()];
}

/** Until when it blocks: what only a user ends has no instant, and what ends with others no known one. */
function Ends({ blocker }: { blocker: BlockerView }) {
  if (blocker.until !== null) return <span>until <When at={blocker.until} /></span>;
  return <span class="quiet">{blocker.lasting ? "until it is changed" : "until others are done"}</span>;
}

function Past({ subject }: { subject: string }) {
  const store = useStore();
  const entries = useAsked<Entry[]>(`/api/entries?limit=${ENTRIES_MAX}&subject=${encodeURIComponent(subject)}`, LANES_EVERY);
  const history = useAsked<History>("/api/history", LANES_EVERY);
  const lane = history.value?.lanes.find((one) => one.key === subject);
  const known = entries.value ?? store.entries.filter((one) => one.subject === subject);
  return (
    <>
      {lane !== undefined && history.value !== null && (
        <section aria-label="Lane"><h3>Since this replica's start</h3><OneLane lane={lane} since={history.value.since} at={history.value.at} /></section>
      )}
      <section aria-label="Entries">
        <h3>Journal</h3>
        {known.length === 0 ? <p class="quiet">No entry since this replica's start.</p> : <EntryLines entries={[...known].reverse()} short />}
        {known.length >= ENTRIES_MAX && <p><a href={link("events", subject)}>Older entries</a></p>}
      </section>
    </>
  );
}
