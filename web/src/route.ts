import { useEffect, useState } from "preact/hooks";

export const VIEWS = ["fleet", "timeline", "calendar", "why", "events"] as const;
export type View = (typeof VIEWS)[number];

export interface Route {
  readonly view: View;
  /** The object that is looked at: `NodeClaim/general-4nv74`; empty: none. */
  readonly subject: string;
  /** What was asked for instead of a view that exists; empty: nothing. */
  readonly unknown: string;
}

const NAMED_MAX = 60;

export function parsed(hash: string): Route {
  const [view = "", ...rest] = hash.replace(/^#\/?/, "").split("/");
  const known = VIEWS.find((one) => one === view);
  if (known === undefined) return { view: "fleet", subject: "", unknown: decoded(view).slice(0, NAMED_MAX) };
  return { view: known, subject: decoded(rest.join("/")), unknown: "" };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function link(view: View, subject = ""): string {
  const path = subject.split("/").map(encodeURIComponent).join("/");
  return subject === "" ? `#/${view}` : `#/${view}/${path}`;
}

export function go(view: View, subject = ""): void {
  window.location.hash = link(view, subject);
}

export function useRoute(): Route {
  const [route, set] = useState(() => parsed(window.location.hash));
  useEffect(() => {
    const changed = (): void => set(parsed(window.location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}
