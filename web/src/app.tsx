import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api, Refused, type About, told } from "./live/api.ts";
import { LiveContext, useLive, useStore } from "./live/context.ts";
import { Store } from "./live/store.ts";
import { Stream } from "./live/stream.ts";
import { Header } from "./parts/header.tsx";
import { Lost, LostServer } from "./parts/lost.tsx";
import { Problem, Waiting } from "./parts/small.tsx";
import { TokenForm } from "./parts/token.tsx";
import { VIEWS, useRoute, type View } from "./route.ts";
import { Calendar } from "./views/calendar.tsx";
import { Events } from "./views/events.tsx";
import { Fleet } from "./views/fleet.tsx";
import { Timeline } from "./views/timeline.tsx";
import { Why } from "./views/why.tsx";

type State =
  | { readonly kind: "asking" }
  | { readonly kind: "token"; readonly why: string }
  | { readonly kind: "failed"; readonly why: string }
  | { readonly kind: "open"; readonly about: About };

/** Asks who the server is, and for a token where it wants one. */
export function Page() {
  const api = useMemo(() => new Api(), []);
  const [state, set] = useState<State>({ kind: "asking" });
  const ask = (): void => {
    api.get<About>("/api/about").then(
      (about) => {
        const shut = about.authentication === "bearer" && about.mode === undefined;
        set(shut ? { kind: "token", why: "" } : { kind: "open", about });
      },
      (error: unknown) => {
        const asked = error instanceof Refused && (error.status === 401 || error.status === 403);
        set(asked ? { kind: "token", why: error.message } : { kind: "failed", why: told(error) });
      },
    );
  };
  useEffect(ask, [api]);
  switch (state.kind) {
    case "asking":
      return <main class="alone"><Waiting what="Asking the server" /></main>;
    case "failed":
      return <main class="alone"><h1>Tenure</h1><Problem text={state.why} again={ask} /></main>;
    case "token":
      return <TokenForm why={state.why} use={(token) => { api.use(token); ask(); }} />;
    case "open":
      return <Open api={api} about={state.about} refused={(why) => set({ kind: "token", why })} />;
  }
}

function Open({ api, about, refused }: { api: Api; about: About; refused: (why: string) => void }) {
  const store = useMemo(() => new Store(), []);
  const stream = useMemo(() => new Stream(api, store, (_, why) => refused(why)), [api, store]);
  useEffect(() => {
    store.clock.speed = about.speed ?? 1;
    stream.start();
    return () => stream.stop();
  }, [stream]);
  const live = useMemo(() => ({ api, store, about }), [api, store, about]);
  return (
    <LiveContext.Provider value={live}>
      <Shell again={() => stream.again()} />
    </LiveContext.Provider>
  );
}

const TITLES: Readonly<Record<View, string>> = {
  fleet: "Fleet",
  timeline: "Timeline",
  calendar: "Calendar",
  why: "Why",
  events: "Events",
};

function Shell({ again }: { again: () => void }) {
  const route = useRoute();
  const { about } = useLive();
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  useEffect(() => {
    const cluster = about.cluster ? ` · ${about.cluster}` : "";
    document.title = `${TITLES[route.view]} · Tenure${cluster}`;
    // A reader of the screen hears that another view is shown.
    if (!first.current) main.current?.focus({ preventScroll: true });
    first.current = false;
  }, [route.view, about]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <Header view={route.view} titles={TITLES} />
      <Lost again={again} />
      <LostServer />
      <main id="main" ref={main} tabIndex={-1} class={`view view-${route.view}`}>
        {route.unknown !== "" && <p class="problem" role="status">There is no view “{route.unknown}”. This is the fleet; the views are {VIEWS.map((one) => TITLES[one]).join(", ")}.</p>}
        <Shown view={route.view} subject={route.subject} />
      </main>
    </>
  );
}

function Shown({ view, subject }: { view: View; subject: string }) {
  const store = useStore();
  if (store.at === "") return <><h1>{TITLES[view]}</h1><Waiting what="Waiting for the first frame" /></>;
  switch (view) {
    case "fleet":
      return <Fleet subject={subject} />;
    case "timeline":
      return <Timeline subject={subject} />;
    case "calendar":
      return <Calendar />;
    case "why":
      return <Why subject={subject} />;
    case "events":
      return <Events subject={subject} />;
  }
}
