import { Subject, When } from "../../parts/small.tsx";
import type { PendingPod } from "../../values.ts";
import { plural, typed } from "../../words.ts";

interface Props {
  readonly pods: ReadonlyMap<string, PendingPod>;
  readonly total: number;
  readonly words: string;
}

/** Pods that wait for a node, and what keeps them waiting. */
export function Pending({ pods, total, words }: Props) {
  const asked = typed(words);
  const all = [...pods.values()];
  const shown = all.filter((pod) => {
    const text = `${pod.key} ${pod.reason} ${pod.because}`.toLowerCase();
    return asked.every((word) => text.includes(word));
  });
  const listed = shown.length > 0 ? shown : all;
  return (
    <section class="pending" aria-label="Pending pods">
      <h2>Pending pods <span class="quiet number">{total}</span></h2>
      {total === 0
        ? <p class="quiet">Every pod has a node.</p>
        : (
          <ul class="lines">
            {listed.map((pod) => (
              <li key={pod.key}>
                <Subject of={pod.key}>{pod.namespace}/{pod.name}</Subject>
                <span class="code">{pod.reason}</span>
                <span class="because">{pod.because}</span>
                <When at={pod.since} />
              </li>
            ))}
          </ul>
        )}
      {total > all.length && <p class="quiet">{plural(total - all.length, "more pod")} not listed.</p>}
    </section>
  );
}
