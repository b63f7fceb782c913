import { useState } from "preact/hooks";
import { Phase, When } from "../../parts/small.tsx";
import { useNow } from "../../live/context.ts";
import { link } from "../../route.ts";
import type { NodeView, Share } from "../../values.ts";
import { money, percent, plural, span } from "../../words.ts";
import type { Order } from "./order.ts";

const PAGE = 100;
const COLUMNS: readonly (readonly [Order, string, boolean])[] = [
  ["name", "Name", false],
  ["pool", "Pool", false],
  ["zone", "Zone", false],
  ["type", "Type", false],
  ["phase", "Phase", false],
  ["next", "Next change", false],
  ["age", "Age", true],
  ["pods", "Pods", true],
  ["cpu", "CPU", true],
  ["memory", "Memory", true],
  ["price", "Price/h", true],
];

interface Props {
  readonly nodes: readonly NodeView[];
  readonly order: Order;
  readonly down: boolean;
  readonly sort: (order: Order, down: boolean) => void;
  readonly chosen: string;
}

export function Table({ nodes, order, down, sort, chosen }: Props) {
  const [many, setMany] = useState(PAGE);
  const now = useNow(10_000);
  if (nodes.length === 0) return <p class="empty">No node matches the filter.</p>;
  return (
    <div class="scrolled" role="region" aria-label="Table of nodes" tabIndex={0}>
      <table class="table">
        <thead>
          <tr>
            {COLUMNS.map(([by, name, right]) => (
              <th key={by} scope="col" class={right ? "right" : ""} aria-sort={by !== order ? undefined : down ? "descending" : "ascending"}>
                <button type="button" class="plain" onClick={() => sort(by, by === order && !down)}>
                  {name}<span aria-hidden="true">{by !== order ? "" : down ? " ▾" : " ▴"}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {nodes.slice(0, many).map((node) => <Row key={node.key} node={node} now={now} chosen={node.key === chosen} />)}
        </tbody>
      </table>
      {many < nodes.length && <button type="button" onClick={() => setMany(many + 5 * PAGE)}>{`Show more: ${plural(nodes.length - many, "node")} left`}</button>}
    </div>
  );
}

function Row({ node, now, chosen }: { node: NodeView; now: number; chosen: boolean }) {
  return (
    <tr class={chosen ? "chosen" : ""}>
      <th scope="row"><a href={link("fleet", node.key)}>{node.name}</a></th>
      <td>{node.pool}</td>
      <td>{node.zone}</td>
      <td>{node.instanceType}{node.capacityType && <span class="quiet"> {node.capacityType}</span>}</td>
      <td><Phase tone={node.tone} phase={node.phase} /></td>
      <td>{node.next !== "" && <span>{node.next} </span>}<When at={node.nextAt ?? node.deadline} /></td>
      <td class="right number">{span(now - Date.parse(node.createdAt))}</td>
      <td class="right number">{node.pods}</td>
      <td class="right number">{full(node.cpu)}</td>
      <td class="right number">{full(node.memory)}</td>
      <td class="right number">{money(node.price)}</td>
    </tr>
  );
}

function full(share: Share | null): string {
  return share === null ? "–" : `${percent(share)} %`;
}
