import { useEffect } from "preact/hooks";
import { type Forecast, nextChange } from "../forecast.ts";
import { type Asked, useAsked, useLive } from "./context.ts";

/** Of the cluster's time; the reader's is shorter where the cluster's runs faster. */
const EVERY = 120_000;
/** The forecast is work for the server: never more often than this, by the reader's clock. */
const LEAST = 5_000;
/** Until the server knows what changed, by the reader's clock. */
const AFTER = 1_000;

/** The forecast, asked for again as the cluster's time passes, and once its next change has passed. */
export function useCalendar(): Asked<Forecast> {
  const { about, store } = useLive();
  const speed = about.speed || 1;
  const every = Math.max(LEAST, EVERY / speed);
  const asked = useAsked<Forecast>("/api/calendar", every);
  const { value } = asked;
  useEffect(() => {
    if (value === null) return undefined;
    const wait = Math.max(LEAST, (nextChange(value, store.clock.now()) - store.clock.now()) / speed + AFTER);
    if (!(wait < every)) return undefined;
    const timer = window.setTimeout(asked.again, wait);
    return () => window.clearTimeout(timer);
  }, [value, store, speed, every]);
  return asked;
}
