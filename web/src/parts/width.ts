import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** How wide an element is, in whole pixels. */
export function useWidth<T extends HTMLElement>(first: number): readonly [RefObject<T | null>, number] {
  const place = useRef<T>(null);
  const [width, set] = useState(first);
  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const sized = new ResizeObserver(() => set(Math.max(100, Math.floor(box.clientWidth))));
    sized.observe(box);
    return () => sized.disconnect();
  }, []);
  return [place, width];
}
