import type { ComponentChildren } from "preact";
import type { Forecast, Rotation } from "../../forecast.ts";
import { Subject, When } from "../../parts/small.tsx";
import { plural, span } from "../../words.ts";

function Listed({ title, head, children, empty }: { title: string; head: readonly string[]; children: ComponentChildren; empty: string }) {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {empty !== "" ? <p class="quiet">{empty}</p> : (
        <div class="scrolled" role="region" aria-label={`Table: ${title}`} tabIndex={0}>
          <table class="table">
            <thead><tr>{head.map((one) => <th key={one} scope="col">{one}</th>)}</tr></thead>
            <tbody>{children}</tbody>
          </table>
        </div>
      )}
    </section>
  );
}

export function Windows({ forecast }: { forecast: Forecast }) {
  const { windows } = forecast;
  return (
    <Listed title="Maintenance windows" head={["Window", "Actions", "Nodes", "Now", "Next change"]} empty={windows.length === 0 ? "There is no MaintenanceWindow: only budgets and protections limit when nodes are disrupted." : ""}>
      {windows.map((one) => (
        <tr key={one.name}>
          <th scope="row"><Subject of={`MaintenanceWindow/${one.name}`}>{one.name}</Subject></th>
          <td>{one.type} {one.actions.join(", ")}</td>
          <td class="number">{one.nodes}</td>
          <td>{one.problem ?? (one.never ? "never active" : one.active ? "active" : "not active")}</td>
          <td><When at={one.changes[0] ?? null} /></td>
        </tr>
      ))}
    </Listed>
  );
}

export function Budgets({ forecast }: { forecast: Forecast }) {
  const { budgets } = forecast;
  return (
    <Listed title="Budgets with a schedule" head={["NodePool", "Nodes at once", "Now", "Next change"]} empty={budgets.length === 0 ? "No NodePool has a budget with a schedule." : ""}>
      {budgets.map((one) => (
        <tr key={`${one.pool} ${one.index}`}>
          <th scope="row"><Subject of={`NodePool/${one.pool}`}>{one.pool}</Subject></th>
          <td class="number">{one.nodes}</td>
          <td>{one.active ? "active" : "not active"}</td>
          <td><When at={one.changes[0] ?? null} /></td>
        </tr>
      ))}
    </Listed>
  );
}

function dueOf({ due, again }: Rotation): string {
  const nodes = plural(due - again, "node");
  return again > 0 ? `${nodes} and ${plural(again, "replacement")}` : nodes;
}

export function Pools({ forecast }: { forecast: Forecast }) {
  const { pools } = forecast;
  return (
    <Listed title="NodePools" head={["NodePool", "Nodes", "Launch time", "Max disrupted at once", "Due, and how many start"]} empty={pools.length === 0 ? "There is no NodePool." : ""}>
      {pools.map((pool) => (
        <tr key={pool.name}>
          <th scope="row"><Subject of={`NodePool/${pool.name}`}>{pool.name}</Subject></th>
          <td class="number">{pool.nodes}</td>
          <td class="number">{pool.launchSeconds === null ? "unknown" : span(pool.launchSeconds * 1000)}</td>
          <td class="number">{pool.peak.nodes}</td>
          <td>{pool.rotations.length === 0 ? "nothing is due" : pool.rotations.map((one) => `${one.reason}: ${dueOf(one)} due, ${one.started} start`).join("; ")}</td>
        </tr>
      ))}
    </Listed>
  );
}
