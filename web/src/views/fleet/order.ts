import { type NodeView, TONES } from "../../values.ts";
import { percent } from "../../words.ts";

export type Order = "name" | "pool" | "zone" | "phase" | "next" | "age" | "price" | "pods" | "cpu" | "memory" | "type";
type Compare = (one: NodeView, other: NodeView) => number;

const text = (of: (node: NodeView) => string): Compare => (one, other) => {
  const [first, second] = [of(one), of(other)];
  return first < second ? -1 : first > second ? 1 : 0;
};
/** The largest first: that is what one looks for. */
const most = (of: (node: NodeView) => number): Compare => (one, other) => of(other) - of(one);

const NEVER = "9";
/** What asks for attention first. */
const RANK = new Map(["unhealthy", "leaving", "waiting", "coming", "serving", "foreign"].map((tone, rank) => [tone, rank]));

export const ORDERS: Readonly<Record<Order, { readonly name: string; readonly compare: Compare }>> = {
  name: { name: "Name", compare: text((node) => node.name) },
  pool: { name: "Pool", compare: text((node) => node.pool) },
  zone: { name: "Zone", compare: text((node) => node.zone) },
  phase: { name: "Phase", compare: (one, other) => (RANK.get(one.tone) ?? TONES.length) - (RANK.get(other.tone) ?? TONES.length) },
  next: { name: "Next change", compare: text((node) => node.nextAt ?? node.deadline ?? NEVER) },
  age: { name: "Age, oldest first", compare: text((node) => node.createdAt) },
  price: { name: "Price", compare: most((node) => node.price ?? -1) },
  pods: { name: "Pods", compare: most((node) => node.pods) },
  cpu: { name: "CPU requested", compare: most((node) => percent(node.cpu)) },
  memory: { name: "Memory requested", compare: most((node) => percent(node.memory)) },
  type: { name: "Instance type", compare: text((node) => node.instanceType) },
};

export function sorted(nodes: NodeView[], order: Order, down: boolean): NodeView[] {
  const { compare } = ORDERS[order];
  const turn = down ? -1 : 1;
  const byName = ORDERS.name.compare;
  return nodes.sort((one, other) => turn * compare(one, other) || byName(one, other));
}
