import { createContext } from "preact";
import { useContext, useEffect, useReducer, useState } from "preact/hooks";
import { Api, type About, told } from "./api.ts";
import { Store } from "./store.ts";

export interface Live {
  readonly api: Api;
  readonly store: Store;
  readonly about: About;
}

export const LiveContext = createContext<Live>({ api: new Api(), store: new Store(), about: { authentication: "none" } });

export function useLive(): Live {
  return useContext(LiveContext);
}

/** The store; whoever asks is drawn again when it changes. */
export function useStore(): Store {
  const { store } = useLive();
  const [, again] = useReducer((times: number) => times + 1, 0);
  useEffect(() => store.subscribe(() => again(undefined)), [store]);
  return store;
}

/** The cluster's clock, read each second. */
export function useNow(milliseconds = 1000): number {
  const { store } = useLive();
  const [now, set] = useState(() => store.clock.now());
  useEffect(() => {
    const timer = window.setInterval(() => set(store.clock.now()), milliseconds);
    return () => window.clearInterval(timer);
  }, [store, milliseconds]);
  return Math.max(now, store.at === "" ? 0 : Date.parse(store.at));
}

/** The cluster's clock while the connection is there; then the last news: nothing is known after it. */
export function useKnownUntil(): number {
  const store = useStore();
  const now = useNow();
  return store.connection.kind === "lost" && store.at !== "" ? Date.parse(store.at) : now;
}

export interface Asked<T> {
  readonly value: T | null;
  readonly problem: string;
  readonly asking: boolean;
  readonly again: () => void;
}

/** What the server answers to a question; asked again every so often where that is given. */
export function useAsked<T>(path: string, every = 0): Asked<T> {
  const { api } = useLive();
  const [answer, set] = useState<{ path: string; value: T | null; problem: string }>({ path: "", value: null, problem: "" });
  const [asked, again] = useReducer((times: number) => times + 1, 0);
  useEffect(() => {
    if (path === "") return undefined;
    const stop = new AbortController();
    let timer = 0;
    const answered = api.get<T>(path, stop.signal).then(
      (value) => set({ path, value, problem: "" }),
      (error: unknown) => {
        if (!stop.signal.aborted) set((old) => ({ path, value: old.path === path ? old.value : null, problem: told(error) }));
      },
    );
    // A slow answer is waited for: the next question comes so long after it.
    void answered.then(() => {
      if (every > 0 && !stop.signal.aborted) timer = window.setTimeout(() => again(undefined), every);
    });
    return () => {
      stop.abort();
      window.clearTimeout(timer);
    };
  }, [api, path, every, asked]);
  const current = answer.path === path;
  return {
    value: current ? answer.value : null,
    problem: current ? answer.problem : "",
    asking: path !== "" && !current,
    again: () => again(undefined),
  };
}
