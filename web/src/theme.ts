import { useEffect, useState } from "preact/hooks";

export type Theme = "auto" | "light" | "dark";
const KEPT = "tenure-theme";

function kept(): Theme {
  try {
    const said = window.localStorage.getItem(KEPT);
    return said === "light" || said === "dark" ? said : "auto";
  } catch {
    return "auto"; // Storage is forbidden: the theme lasts as long as the page.
  }
}

function show(theme: Theme): void {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme);
}

/** Before anything is drawn. */
export function settle(): void {
  show(kept());
}

export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const [theme, set] = useState<Theme>(kept);
  const choose = (chosen: Theme): void => {
    show(chosen);
    try {
      window.localStorage.setItem(KEPT, chosen);
    } catch {
      // As above.
    }
    set(chosen);
    window.dispatchEvent(new Event("tenure-theme"));
  };
  return [theme, choose];
}

/** A number that changes with what the colours are: what is drawn on a canvas is drawn again. */
export function useColours(): number {
  const [times, set] = useState(0);
  useEffect(() => {
    const changed = (): void => set((old) => old + 1);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", changed);
    window.addEventListener("tenure-theme", changed);
    return () => {
      system.removeEventListener("change", changed);
      window.removeEventListener("tenure-theme", changed);
    };
  }, []);
  return times;
}

export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
