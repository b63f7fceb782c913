import { useEffect, useState } from "preact/hooks";
import { useNow, useStore } from "../live/context.ts";
import { instant, relative, span } from "../words.ts";

/** Tenure itself hears nothing: what it shows is old, and the server says so. */
export function LostServer() {
  const { lost } = useStore();
  const now = useNow();
  if (lost === null) return null;
  return (
    <div class="lost" role="alert">
      <p>
        <strong>Data of {instant(lost.since)}.</strong>{" "}
        Tenure's connection to the API server is lost for{" "}
        <span class="number" aria-live="off">{span(Math.max(0, now - Date.parse(lost.since)))}</span>: {lost.why}. It is tried again.
      </p>
    </div>
  );
}

/** What is shown is old: since when, why, and when the next attempt is. */
export function Lost({ again }: { again: () => void }) {
  const store = useStore();
  const now = useNow();
  const { connection } = store;
  const lost = connection.kind === "lost";
  const [, tick] = useState(0);
  useEffect(() => {
    if (!lost) return undefined;
    const timer = window.setInterval(() => tick((old) => old + 1), 1000);
    return () => window.clearInterval(timer);
  }, [lost]);
  if (connection.kind !== "lost") return null;
  const wait = connection.retryAt - Date.now();
  return (
    <div class="lost" role="alert">
      <p>
        <strong>Connection lost since {instant(connection.since)}.</strong>{" "}
        {store.at === "" ? "Nothing has been shown yet" : `What you see is of ${instant(store.at)} (${relative(store.at, now)})`}: {connection.why}.
      </p>
      <p class="number" aria-live="off">{wait > 0 ? `Next attempt in ${span(wait)}` : "Connecting…"}</p>
      <button type="button" onClick={again}>Connect now</button>
    </div>
  );
}
