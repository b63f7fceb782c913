import { useMemo } from "preact/hooks";
import { useStore } from "../live/context.ts";
import { Choice, Filter, Select } from "../parts/filter.tsx";
import { useRemembered } from "../remembered.ts";
import { go } from "../route.ts";
import type { NodeView, Tone } from "../values.ts";
import { matches, plural, typed } from "../words.ts";
import { CostChart } from "./fleet/cost.tsx";
import { Detail } from "./fleet/detail.tsx";
import { Grid } from "./fleet/grid.tsx";
import { Pending } from "./fleet/pending.tsx";
import { type Order, ORDERS, sorted } from "./fleet/order.ts";
import { Table } from "./fleet/table.tsx";
import { Totals } from "./fleet/totals.tsx";

type Form = "grid" | "table";
const FORMS: readonly (readonly [Form, string])[] = [["grid", "Grid"], ["table", "Table"]];
const NAMES: readonly (readonly [Order, string])[] = Object.entries(ORDERS).map(([key, one]) => [key as Order, one.name] as const);

/** Every node, by pool and zone; what it costs; which pods wait. */
export function Fleet({ subject }: { subject: string }) {
  const store = useStore();
  const [text, setText] = useRemembered("fleet.filter", "");
  const [tone, setTone] = useRemembered<Tone | "">("fleet.tone", "");
  const [order, setOrder] = useRemembered<Order>("fleet.order", "name");
  const [down, setDown] = useRemembered("fleet.down", false);
  const [form, setForm] = useRemembered<Form>("fleet.form", "grid");
  const shown = useMemo(() => {
    const words = typed(text);
    const found: NodeView[] = [];
    for (const node of store.nodes.values()) {
      if ((tone === "" || node.tone === tone) && matches(node, words)) found.push(node);
    }
    return sorted(found, order, down);
  }, [store.nodes, text, tone, order, down]);
  const chosen = store.nodes.get(subject);
  const filtered = text !== "" || tone !== "";
  const open = (node: NodeView): void => go("fleet", node.key);
  return (
    <>
      <h1 class="unseen">Fleet</h1>
      {store.notes.length > 0 && <ul class="notes" aria-label="What you have to know">{store.notes.map((note) => <li key={note}>{note}</li>)}</ul>}
      <div class="overview">
        <Totals totals={store.totals} tone={tone} setTone={setTone} />
        <CostChart />
      </div>
      <div class={subject === "" ? "fleet" : "fleet with-detail"}>
        <section class="nodes" aria-label="Nodes">
          <div class="toolbar">
            <Filter label="Filter" hint="name, pool, zone, phase, type, reason" value={text} set={setText} />
            <Select label="Sort by" all={NAMES} value={order} set={(value) => { setOrder(value); setDown(false); }} />
            <Choice label="Form" all={FORMS} value={form} set={setForm} />
            <p class="quiet number" role="status">
              {filtered ? `${shown.length.toLocaleString("en-US")} of ${plural(store.nodes.size, "node")}` : plural(store.nodes.size, "node")}
              {filtered && <button type="button" class="plain" onClick={() => { setText(""); setTone(""); }}>Show all</button>}
            </p>
          </div>
          {form === "grid"
            ? <Grid nodes={shown} pools={store.pools} chosen={subject} open={open} filtered={filtered} />
            : <Table nodes={shown} order={order} down={down} sort={(by, turned) => { setOrder(by); setDown(turned); }} chosen={subject} />}
          <Pending pods={store.pending} total={store.totals.pending} words={text} />
        </section>
        {subject !== "" && <Detail subject={subject} node={chosen} close={() => go("fleet")} />}
      </div>
    </>
  );
}
