import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAsked, useStore } from "../live/context.ts";
import { Problem, Waiting } from "../parts/small.tsx";
import { go } from "../route.ts";
import type { Store } from "../live/store.ts";
import { EXPLAINED } from "../values.ts";
import { Answer, type Explained } from "./why/answer.tsx";

const EVERY = 20_000;
const SUGGESTED = 40;

function suggestions(store: Store, text: string): string[] {
  const all = [...store.nodes.keys(), ...store.pools.map((pool) => `NodePool/${pool.name}`), ...store.pending.keys()];
  const words = text.toLowerCase();
  const found: string[] = [];
  for (const one of all) {
    if (one.toLowerCase().includes(words)) found.push(one);
    if (found.length === SUGGESTED) break;
  }
  return found;
}

/** A bare name is a node's, a pool's or a pod's, if one is called so. */
function subjectOf(text: string, store: Store): string {
  const asked = text.trim();
  if (asked.includes("/")) return asked;
  const node = [...store.nodes.values()].find((one) => one.name === asked || one.node === asked);
  if (node !== undefined) return node.key;
  if (store.pools.some((pool) => pool.name === asked)) return `NodePool/${asked}`;
  return [...store.pending.values()].find((pod) => pod.name === asked)?.key ?? `NodeClaim/${asked}`;
}

/** Why an object is as it is, what blocks it, until when, and what to change. */
export function Why({ subject }: { subject: string }) {
  const store = useStore();
  const [text, setText] = useState(subject);
  useEffect(() => setText(subject), [subject]);
  const asked = useAsked<Explained>(subject === "" ? "" : `/api/why?subject=${encodeURIComponent(subject)}`, EVERY);
  const offered = useMemo(() => suggestions(store, text === subject ? "" : text), [store.nodes, store.pools, store.pending, text, subject]);
  const title = useRef<HTMLHeadingElement>(null);
  return (
    <>
      <h1 ref={title}>Why</h1>
      <form class="ask" role="search" onSubmit={(event) => { event.preventDefault(); if (text.trim() !== "") go("why", subjectOf(text, store)); }}>
        <label for="subject">Object</label>
        <input id="subject" list="subjects" value={text} autocomplete="off" spellcheck={false} placeholder="NodeClaim/general-4nv74, Pod/default/web-1 or a name"
          onInput={(event) => setText(event.currentTarget.value)} />
        <datalist id="subjects">{offered.map((one) => <option key={one} value={one} />)}</datalist>
        <button type="submit" class="primary">Explain</button>
      </form>
      {subject === "" && <Start store={store} />}
      {asked.asking && <Waiting what={`Asking about ${subject}`} />}
      {asked.problem !== "" && <Problem text={asked.problem} again={asked.again} />}
      {asked.value !== null && <Answer subject={subject} said={asked.value} />}
    </>
  );
}

/** Where nothing was asked yet: what asks for an explanation by itself. */
function Start({ store }: { store: Store }) {
  const rank = new Map([["unhealthy", 0], ["leaving", 1], ["waiting", 2]]);
  const nodes = [...store.nodes.values()].filter((node) => rank.has(node.tone)).sort((one, other) => (rank.get(one.tone) ?? 9) - (rank.get(other.tone) ?? 9)).slice(0, 12);
  const pods = [...store.pending.values()].slice(0, 6);
  return (
    <section class="card" aria-label="What asks for attention">
      <h2>What asks for attention</h2>
      {nodes.length + pods.length === 0 && <p class="quiet">No node is unhealthy, leaving or blocked, and no pod is pending. Kinds that can be explained: {EXPLAINED.join(", ")}.</p>}
      <ul class="lines">
        {[...nodes, ...pods].map((one) => (
          <li key={one.key}><a href={`#/why/${one.key.split("/").map(encodeURIComponent).join("/")}`}>{one.key}</a><span class="code">{one.reason}</span><span class="because">{one.because}</span></li>
        ))}
      </ul>
    </section>
  );
}
