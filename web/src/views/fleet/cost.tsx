import { useEffect, useMemo, useRef } from "preact/hooks";
import uPlot from "uplot";
import { useStore } from "../../live/context.ts";
import { colour, useColours } from "../../theme.ts";
import { clockTime, instant, money, perHour } from "../../words.ts";

const HIGH = 132;
const MICRO = 1_000_000;
const FONT = "11px system-ui, sans-serif";

function options(width: number): uPlot.Options {
  const quiet = colour("--ink-quiet");
  const line = colour("--rule");
  const axis: uPlot.Axis = { stroke: quiet, font: FONT, grid: { stroke: line, width: 1 }, ticks: { show: false } };
  return {
    width,
    height: HIGH,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { y: { range: (_, __, high) => [0, Math.max(high * 1.15, 0.01)] } },
    axes: [
      { ...axis, size: 22, space: 70, grid: { show: false }, values: (_, at) => at.map((one) => clockTime(one * 1000).slice(0, 5)) },
      { ...axis, size: 58, space: 30, values: (_, prices) => prices.map((one) => money(one * MICRO)) },
    ],
    series: [
      {},
      { stroke: colour("--accent"), points: { show: false }, width: 1.75, fill: colour("--accent-wash"), paths: uPlot.paths.stepped?.({ align: 1 }) },
    ],
  };
}

/** What the fleet costs an hour, since this replica began. */
export function CostChart() {
  const store = useStore();
  const { cost } = store;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const colours = useColours();
  const data = useMemo<uPlot.AlignedData>(() => {
    const last = cost.at(-1);
    const now = last === undefined ? [] : [{ ...last, at: store.at > last.at ? store.at : last.at }];
    const all = [...cost, ...now].map((one) => [Date.parse(one.at) / 1000, one.price / MICRO] as const);
    return [all.map(([at]) => at), all.map(([, price]) => price)];
  }, [cost, store.at]);
  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const made = new uPlot(options(Math.max(120, box.clientWidth)), data, box);
    plot.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: Math.max(120, box.clientWidth), height: HIGH }));
    sized.observe(box);
    return () => {
      sized.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [colours]);
  useEffect(() => plot.current?.setData(data), [data]);
  const prices = cost.map((one) => one.price);
  const first = cost[0];
  const low = prices.reduce((one, other) => Math.min(one, other), Infinity);
  const high = prices.reduce((one, other) => Math.max(one, other), 0);
  const said = first === undefined
    ? "No cost is known yet"
    : `Lowest ${perHour(low)}, highest ${perHour(high)}, since ${instant(first.at)}`;
  return (
    <section class="cost" aria-label="Cost over time">
      <h2>Cost over time</h2>
      <div ref={place} class="plot" role="img" aria-label={`Cost an hour over time. ${said}`} />
      <p class="quiet number">{said}</p>
    </section>
  );
}
