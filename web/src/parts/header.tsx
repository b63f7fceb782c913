import { useLive, useNow, useStore } from "../live/context.ts";
import { VIEWS, link, type View } from "../route.ts";
import { type Theme, useTheme } from "../theme.ts";
import { instant, relative } from "../words.ts";
import { Choice } from "./filter.tsx";

const THEMES: readonly (readonly [Theme, string])[] = [["auto", "Auto"], ["light", "Light"], ["dark", "Dark"]];
const MODES: Readonly<Record<string, string>> = {
  run: "",
  "beside-karpenter": "beside Karpenter",
  up: "embedded cluster",
  board: "read only",
  scenario: "scenario",
};

export function Header({ view, titles }: { view: View; titles: Readonly<Record<View, string>> }) {
  const [theme, choose] = useTheme();
  return (
    <header class="header">
      <a class="brand" href={link("fleet")}>
        <svg viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><path d="M4 6h16M4 12h11M4 18h6" /><circle cx="18.5" cy="15.5" r="3" /></svg>
        Tenure
      </a>
      <nav aria-label="Views">
        {VIEWS.map((one) => (
          <a key={one} href={link(one)} aria-current={one === view ? "page" : undefined}>{titles[one]}</a>
        ))}
      </nav>
      <State />
      <Choice label="Theme" all={THEMES} value={theme} set={choose} />
    </header>
  );
}

function State() {
  const { about } = useLive();
  const store = useStore();
  const mode = MODES[about.mode ?? ""] ?? about.mode ?? "";
  const live = store.connection.kind === "live";
  const cluster = store.cluster || about.cluster || "";
  const speed = about.speed && about.speed !== 1 ? `${about.speed}×` : "";
  const chip = [mode === cluster ? "" : mode, speed].filter(Boolean).join(", ");
  return (
    <div class="state">
      {cluster !== "" && <span class="cluster" title={cluster}>{cluster}</span>}
      {chip !== "" && <span class="chip">{chip}</span>}
      <span class={live ? "pulse live" : "pulse"} role="status">{live ? "Live" : store.connection.kind === "lost" ? "Not connected" : "Connecting"}</span>
      {store.at !== "" && (store.connection.kind === "lost" ? <LastNews at={store.at} /> : <Running />)}
    </div>
  );
}

/** The cluster's clock, which runs on while nothing changes. */
function Running() {
  const now = useNow();
  return <time class="number quiet" role="timer" aria-label="The cluster's time" dateTime={instant(now)}>{instant(now)}</time>;
}

function LastNews({ at }: { at: string }) {
  const now = useNow();
  return <span class="number quiet">last news <time dateTime={at}>{instant(at)}</time>, {relative(at, now)}</span>;
}
