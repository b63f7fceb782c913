import { TONE, TONES, type Tone, type Totals as Values } from "../../values.ts";
import { count, money, plural } from "../../words.ts";
import { Sign } from "../../parts/small.tsx";

const HOURS_A_DAY = 24;

interface Props {
  readonly totals: Values;
  readonly tone: Tone | "";
  readonly setTone: (tone: Tone | "") => void;
}

export function Totals({ totals, tone, setTone }: Props) {
  const all = TONES.reduce((sum, one) => sum + (totals.nodes[one] ?? 0), 0);
  return (
    <section class="totals" aria-label="Totals">
      <div class="figure">
        <h2>Nodes</h2>
        <p class="large number">{count(all)}</p>
        <div class="tones" role="group" aria-label="Show one phase alone">
          {TONES.map((one) => (
            <button key={one} type="button" class={`tone-button tone-${one}`} aria-pressed={tone === one}
              title={TONE[one].means} onClick={() => setTone(tone === one ? "" : one)}>
              <Sign tone={one} />
              <span class="number">{count(totals.nodes[one] ?? 0)}</span> {TONE[one].word}
            </button>
          ))}
        </div>
      </div>
      <div class="figure">
        <h2>Cost now</h2>
        <p class="large number">{money(totals.price)}<span class="unit">/h</span></p>
        <p class="quiet number">{money(totals.price * HOURS_A_DAY)} a day at this rate</p>
        {totals.unpriced > 0 && <p class="quiet">{plural(totals.unpriced, "node")} without a known price not counted</p>}
      </div>
      <div class="figure">
        <h2>Pods</h2>
        <p class="large number">{count(totals.running)}</p>
        <p class={totals.pending > 0 ? "number warned" : "quiet number"}>{totals.pending > 0 ? `${count(totals.pending)} pending` : "none pending"}</p>
      </div>
    </section>
  );
}
