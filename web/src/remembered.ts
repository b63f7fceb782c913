import { useState } from "preact/hooks";

const kept = new Map<string, unknown>();

/** A state that outlives its view: who comes back finds the filter as it was. It goes with the page. */
export function useRemembered<T>(name: string, first: T): readonly [T, (value: T) => void] {
  const [value, set] = useState<T>(() => (kept.has(name) ? (kept.get(name) as T) : first));
  return [
    value,
    (next) => {
      kept.set(name, next);
      set(next);
    },
  ];
}
