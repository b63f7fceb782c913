import { type Forecast, listedUntil, merged, periods } from "../../forecast.ts";
import { Name } from "../../parts/small.tsx";
import { instant } from "../../words.ts";
import { type Scale, ticks } from "./scale.ts";

const HIGH = 26;
const BAND = 16;

export function Axis({ scale, names, now, cursor }: { scale: Scale; names: number; now: number; cursor: number }) {
  const inside = now >= scale.from && now <= scale.to;
  return (
    <svg class="axis" width={names + scale.width} height={HIGH} aria-hidden="true">
      <text class="axis-zone" x="0" y="17">UTC</text>
      <g transform={`translate(${names} 0)`}>
        {ticks(scale).map(({ at, text }) => (
          <g key={at} transform={`translate(${scale.x(at)} 0)`}><line y1="20" y2={HIGH} /><text y="15">{text}</text></g>
        ))}
        {inside && <line class="now" x1={scale.x(now)} x2={scale.x(now)} y1="18" y2={HIGH} />}
        <path class="cursor-head" d={`M${scale.x(cursor)} ${HIGH}l-5 -7h10z`} />
      </g>
    </svg>
  );
}

/** Maintenance windows and budgets with a schedule: when they are active. */
export function Bands({ forecast, scale, names }: { forecast: Forecast; scale: Scale; names: number }) {
  const rows = [
    ...forecast.windows.map((one) => ({ key: `window ${one.name}`, name: one.name, kind: `MaintenanceWindow ${one.name} (${one.type} ${one.actions.join(", ")})`, block: one.type === "Block", on: one })),
    ...forecast.budgets.map((one) => ({ key: `budget ${one.pool} ${one.index}`, name: `${one.pool}: ${one.nodes}`, kind: `budget ${one.index} of NodePool ${one.pool} (${one.nodes})`, block: one.nodes === "0" || one.nodes === "0%", on: one })),
  ].slice(0, 12);
  if (rows.length === 0) return null;
  const begin = Math.max(scale.from, Date.parse(forecast.at));
  const end = Math.min(scale.to, Date.parse(forecast.until));
  const pixel = (scale.to - scale.from) / scale.width;
  return (
    <ul class="bands" aria-label="Windows and budgets">
      {rows.map(({ key, name, kind, block, on }) => {
        const spans = periods(on, begin, listedUntil(on, end));
        const said = spans.slice(0, 8).map((one) => `${instant(one.from)} to ${instant(one.to)}`).join(", ");
        return (
          <li key={key}>
            <span class="band-name" style={{ width: `${names}px` }} title={kind}><Name of={name} /></span>
            <svg width={scale.width} height={BAND} role="img" aria-label={`${kind}: active ${said || "at no time shown"}`}>
              {merged(spans, pixel).map((one) => (
                <rect key={one.from} class={block ? "band blocks" : "band"} x={scale.x(one.from)} y="4" width={Math.max(1.5, scale.x(one.to) - scale.x(one.from))} height={BAND - 8} rx="2">
                  <title>{`${kind}: ${one.many > 1 ? `${one.many} periods, ` : ""}${instant(one.from)} to ${instant(one.to)}`}</title>
                </rect>
              ))}
            </svg>
          </li>
        );
      })}
    </ul>
  );
}
