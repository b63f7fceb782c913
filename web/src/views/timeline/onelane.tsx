import type { Lane } from "../../values.ts";
import { instant } from "../../words.ts";
import { useWidth } from "../../parts/width.ts";
import { inWords } from "./lanes.ts";
import { scale } from "./scale.ts";
import { Strip } from "./strip.tsx";

/** The lane of one node, in its panel: from this replica's start until now. */
export function OneLane({ lane, since, at }: { lane: Lane; since: string; at: string }) {
  const [place, width] = useWidth<HTMLDivElement>(300);
  const now = Date.parse(at);
  const first = Math.max(Date.parse(since), Date.parse(lane.segments[0]?.begin ?? since));
  const past = lane.marks.filter((mark) => Date.parse(mark.at) <= now);
  return (
    <div ref={place}>
      <Strip scale={scale(Math.min(first, now - 1000), now, width)} segments={lane.segments} foreseen={[]} marks={past} now={now} label={`${lane.name}: ${inWords(lane)}`} />
      <ol class="phases">
        {lane.segments.slice(-8).map((one) => (
          <li key={one.begin}><time class="number" dateTime={one.begin}>{instant(one.begin)}</time> {one.phase}</li>
        ))}
      </ol>
    </div>
  );
}
