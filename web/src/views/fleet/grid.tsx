import { Component } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type NodeView, type PoolView, TONE } from "../../values.ts";
import { perHour, plural } from "../../words.ts";
import { Subject } from "../../parts/small.tsx";

interface Props {
  readonly nodes: readonly NodeView[];
  readonly pools: readonly PoolView[];
  readonly chosen: string;
  readonly open: (node: NodeView) => void;
  readonly filtered: boolean;
}

const NOWHERE = "";

/** Nodes by pool and zone, in the order in which they come. */
function grouped(nodes: readonly NodeView[]): Map<string, Map<string, NodeView[]>> {
  const pools = new Map<string, Map<string, NodeView[]>>();
  for (const node of nodes) {
    let zones = pools.get(node.pool);
    if (zones === undefined) pools.set(node.pool, (zones = new Map()));
    const there = zones.get(node.zone);
    if (there === undefined) zones.set(node.zone, [node]);
    else there.push(node);
  }
  return pools;
}

/** One cell for each node. The whole grid is one stop of the Tab key: arrows go from cell to cell. */
export function Grid({ nodes, pools, chosen, open, filtered }: Props) {
  const groups = useMemo(() => grouped(nodes), [nodes]);
  const zones = useMemo(() => [...new Set(nodes.map((node) => node.zone))].sort(), [nodes]);
  const [at, setAt] = useState("");
  const place = useRef<HTMLDivElement>(null);
  const stop = nodes.some((node) => node.key === at) ? at : (nodes[0]?.key ?? "");
  const openLast = useRef(open);
  useEffect(() => void (openLast.current = open));
  const [acts] = useState(() => ({ open: (node: NodeView) => { setAt(node.key); openLast.current(node); }, at: setAt }));
  const known = new Map(pools.map((pool) => [pool.name, pool]));
  const names = [...new Set([...(filtered ? [] : known.keys()), ...groups.keys()])].sort((one, other) => Number(one === NOWHERE) - Number(other === NOWHERE) || (one < other ? -1 : 1));
  if (names.length === 0) return <p class="empty">{filtered ? "No node matches the filter." : "There is no node and no NodePool."}</p>;
  return (
    <div ref={place} class="grid" onKeyDown={(event) => moved(event, place.current)}>
      <table class="grid-table">
        <caption class="unseen">Nodes by NodePool and zone. Arrow keys go from node to node, Enter shows one.</caption>
        <thead>
          <tr><th scope="col">NodePool</th>{zones.map((zone) => <th key={zone} scope="col">{zone || "no zone yet"}</th>)}</tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <PoolHead name={name} pool={known.get(name)} nodes={groups.get(name)} />
              {zones.map((zone) => (
                <td key={zone} data-zone={zone || "no zone yet"}>
                  <Cells nodes={groups.get(name)?.get(zone) ?? []} stop={stop} chosen={chosen} acts={acts} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function PoolHead({ name, pool, nodes }: { name: string; pool: PoolView | undefined; nodes: Map<string, NodeView[]> | undefined }) {
  const many = [...(nodes?.values() ?? [])].reduce((sum, some) => sum + some.length, 0);
  return (
    <th scope="row">
      {name === NOWHERE ? <span class="pool-name">no NodePool</span> : <span class="pool-name"><Subject of={`NodePool/${name}`}>{name}</Subject></span>}
      <span class="quiet number">{plural(many, "node")}{pool ? `, ${perHour(pool.price)}` : ""}{pool && pool.unpriced > 0 ? `, ${pool.unpriced} unpriced` : ""}</span>
      {pool && pool.because !== "" && <span class="pool-because" title={pool.because}>{pool.because}</span>}
    </th>
  );
}

interface Acts {
  readonly open: (node: NodeView) => void;
  readonly at: (key: string) => void;
}

function Cells({ nodes, stop, chosen, acts }: { nodes: readonly NodeView[]; stop: string; chosen: string; acts: Acts }) {
  return (
    <div class="cells">
      {nodes.map((node) => <Cell key={node.key} node={node} stop={node.key === stop} chosen={node.key === chosen} acts={acts} />)}
    </div>
  );
}

interface CellProps {
  readonly node: NodeView;
  readonly stop: boolean;
  readonly chosen: boolean;
  readonly acts: Acts;
}

/** Drawn again only if its node differs: there are thousands. */
class Cell extends Component<CellProps> {
  override shouldComponentUpdate(next: CellProps): boolean {
    const { node, stop, chosen } = this.props;
    return node !== next.node || stop !== next.stop || chosen !== next.chosen;
  }

  override render({ node, stop, chosen, acts }: CellProps) {
    const said = `${node.name}, ${node.phase}`;
    return (
      <button type="button" class={`cell tone-${node.tone}`} tabIndex={stop ? 0 : -1} aria-label={said} title={said}
        aria-pressed={chosen} data-key={node.key} onClick={() => acts.open(node)} onFocus={() => acts.at(node.key)}>
        {TONE[node.tone].sign}
      </button>
    );
  }
}

/** Arrow keys: left and right by one; up and down to the cell that is nearest in the line above or below. */
function moved(event: KeyboardEvent, place: HTMLElement | null): void {
  const from = event.target as HTMLElement;
  if (place === null || !from.classList.contains("cell")) return;
  const cells = [...place.querySelectorAll<HTMLElement>(".cell")];
  const index = cells.indexOf(from);
  const steps: Readonly<Record<string, () => HTMLElement | undefined>> = {
    ArrowRight: () => cells[index + 1],
    ArrowLeft: () => cells[index - 1],
    Home: () => cells[0],
    End: () => cells.at(-1),
    ArrowDown: () => nearest(cells, from, 1),
    ArrowUp: () => nearest(cells, from, -1),
  };
  const step = steps[event.key];
  if (step === undefined) return;
  event.preventDefault();
  step()?.focus();
}

function nearest(cells: readonly HTMLElement[], from: HTMLElement, way: 1 | -1): HTMLElement | undefined {
  const here = from.getBoundingClientRect();
  let best: HTMLElement | undefined;
  let least = Infinity;
  for (const cell of cells) {
    const there = cell.getBoundingClientRect();
    const high = way * (there.top - here.top);
    if (high < 4) continue;
    const far = high * 1000 + Math.abs(there.left - here.left);
    if (far < least) [best, least] = [cell, far];
  }
  return best;
}

