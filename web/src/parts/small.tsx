import type { ComponentChildren } from "preact";
import { useNow } from "../live/context.ts";
import { link } from "../route.ts";
import { EXPLAINED, type Share, TONE, type Tone } from "../values.ts";
import { instant, near, percent, relative } from "../words.ts";

export function Sign({ tone }: { tone: Tone }) {
  return <span class={`sign tone-${tone}`} aria-hidden="true">{TONE[tone].sign}</span>;
}

/** A phase with its colour, its sign and its words. */
export function Phase({ tone, phase }: { tone: Tone; phase: string }) {
  return <span class={`phase tone-${tone}`}><span aria-hidden="true">{TONE[tone].sign}</span> {phase}</span>;
}

/** Signs of a name that are seen however narrow its place is: they tell nodes of one pool apart. */
const TAIL = 6;

/** A name that is cut before its end where there is no room. */
export function Name({ of }: { of: string }) {
  return <span class="name"><span>{of.slice(0, -TAIL)}</span><span>{of.slice(-TAIL)}</span></span>;
}

/** An instant, and how far away it is. */
export function When({ at }: { at: string | null }) {
  const now = useNow();
  if (at === null || at === "") return <span class="quiet">–</span>;
  return <time class="number" dateTime={at} title={instant(at)}>{near(at, now)} <span class="quiet">({relative(at, now)})</span></time>;
}

/** `NodePool/web`, as a link to its own explanation; `VolumeAttachment/csi-1` has none and is text. */
export function Subject({ of, children }: { of: string; children?: ComponentChildren }) {
  if (!EXPLAINED.includes(of.slice(0, Math.max(0, of.indexOf("/"))))) return <span class="subject">{children ?? of}</span>;
  return <a class="subject" href={link("why", of)}>{children ?? of}</a>;
}

export function Bar({ name, share, said }: { name: string; share: Share | null; said: (amount: number) => string }) {
  if (share === null) return <div class="bar-row"><span>{name}</span><span class="quiet">unknown</span></div>;
  const full = percent(share);
  const text = `${said(share.requested)} of ${said(share.allocatable)} (${full} %)`;
  return (
    <div class="bar-row">
      <span>{name}</span>
      <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={`${name} requested: ${text}`}>
        <rect class="bar-back" width="100" height="8" />
        <rect class={full > 100 ? "bar-over" : "bar-full"} width={Math.min(100, full)} height="8" />
      </svg>
      <span class="number">{text}</span>
    </div>
  );
}

export function Problem({ text, again }: { text: string; again?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>{text}</p>
      {again && <button type="button" onClick={again}>Ask again</button>}
    </div>
  );
}

export function Waiting({ what }: { what: string }) {
  return <p class="quiet" role="status">{what}…</p>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return <div class="fact"><dt>{name}</dt><dd>{children}</dd></div>;
}
