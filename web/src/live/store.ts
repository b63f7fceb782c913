import type { Change, Cost, Entry, Frame, Lost, NodeView, PendingPod, PoolView, Totals } from "../values.ts";
import { Clock } from "./clock.ts";

/** Entries that are kept: what was before them is asked for by its subject. */
const ENTRIES_MAX = 1000;
/** Entries of one answer, at the most. */
export const ENTRIES_ASKED = 500;
const COST_MAX = 4000;

export type Connection =
  | { readonly kind: "connecting" }
  | { readonly kind: "live" }
  | { readonly kind: "lost"; readonly since: number; readonly why: string; readonly retryAt: number };

const NOTHING: Totals = { nodes: {}, running: 0, pending: 0, price: 0, unpriced: 0 };

/** Everything the page knows, and who wants to be told when it changes. */
export class Store {
  readonly clock = new Clock();
  nodes: ReadonlyMap<string, NodeView> = new Map();
  pending: ReadonlyMap<string, PendingPod> = new Map();
  pools: readonly PoolView[] = [];
  totals: Totals = NOTHING;
  notes: readonly string[] = [];
  lost: Lost | null = null;
  entries: readonly Entry[] = [];
  cost: readonly Cost[] = [];
  cluster = "";
  leader = "";
  at = "";
  connection: Connection = { kind: "connecting" };
  #version = 0;
  readonly #told = new Set<() => void>();

  get version(): number {
    return this.#version;
  }

  subscribe(changed: () => void): () => void {
    this.#told.add(changed);
    return () => void this.#told.delete(changed);
  }

  frame(frame: Frame): void {
    this.nodes = new Map(frame.nodes.map((node) => [node.key, node]));
    this.pending = new Map(frame.pending.map((pod) => [pod.key, pod]));
    this.cluster = frame.cluster;
    this.#common(frame);
  }

  change(change: Change): void {
    const nodes = new Map(this.nodes);
    const pending = new Map(this.pending);
    for (const key of change.gone) {
      nodes.delete(key);
      pending.delete(key);
    }
    for (const node of change.nodes) nodes.set(node.key, node);
    for (const pod of change.pending) pending.set(pod.key, pod);
    this.nodes = nodes;
    this.pending = pending;
    this.#common(change);
  }

  /** Of those that were asked for when the stream began, the newest arrive by it, too. */
  append(entries: readonly Entry[]): void {
    const from = entries[0]?.at ?? "";
    const known = new Set(this.entries.filter((one) => one.at >= from).map((one) => JSON.stringify(one)));
    const news = entries.filter((one) => !known.has(JSON.stringify(one)));
    if (news.length === 0) return;
    this.entries = [...this.entries, ...news].slice(-ENTRIES_MAX);
    this.#changed();
  }

  replaceEntries(entries: readonly Entry[]): void {
    this.entries = entries.slice(-ENTRIES_MAX);
    this.#changed();
  }

  replaceCost(cost: readonly Cost[]): void {
    const last = cost.at(-1)?.at ?? "";
    this.cost = [...cost, ...this.cost.filter((one) => one.at > last)].slice(-COST_MAX);
    this.#changed();
  }

  connected(connection: Connection): void {
    this.connection = connection;
    this.#changed();
  }

  #common(said: Frame | Change): void {
    this.at = said.at;
    this.clock.set(said.at);
    this.leader = said.leader;
    this.notes = said.notes;
    this.lost = said.lost;
    this.pools = said.pools;
    this.totals = said.totals;
    const { price, unpriced } = said.totals;
    const last = this.cost.at(-1);
    if (last === undefined || (said.at > last.at && (last.price !== price || last.nodes !== this.nodes.size))) {
      const sample = { at: said.at, price, unpriced, nodes: this.nodes.size };
      this.cost = [...this.cost, sample].slice(-COST_MAX);
    }
    this.#changed();
  }

  #changed(): void {
    this.#version += 1;
    for (const told of this.#told) told();
  }
}
