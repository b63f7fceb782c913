import { useEffect, useRef } from "preact/hooks";

interface Props {
  readonly label: string;
  readonly hint: string;
  readonly value: string;
  readonly set: (value: string) => void;
}

/** A box to type into; `/` goes there from anywhere on the page, Escape empties it. */
export function Filter({ label, hint, value, set }: Props) {
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      const at = event.target as HTMLElement;
      if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName)) return;
      event.preventDefault();
      box.current?.focus();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
  return (
    <label class="filter">
      <span class="label">{label}</span>
      <input
        ref={box}
        type="search"
        value={value}
        placeholder={hint}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => set(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") set("");
        }}
      />
    </label>
  );
}

/** One of a few, as buttons that stand together. */
export function Choice<T extends string>({ label, all, value, set }: {
  label: string;
  all: readonly (readonly [T, string])[];
  value: T;
  set: (value: T) => void;
}) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {all.map(([one, name]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => set(one)}>{name}</button>
      ))}
    </div>
  );
}

export function Select<T extends string>({ label, all, value, set }: {
  label: string;
  all: readonly (readonly [T, string])[];
  value: T;
  set: (value: T) => void;
}) {
  return (
    <label class="select">
      <span class="label">{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value as T)}>
        {all.map(([one, name]) => <option key={one} value={one}>{name}</option>)}
      </select>
    </label>
  );
}
