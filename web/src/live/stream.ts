import type { Change, Entry, Frame, History } from "../values.ts";
import { Api, Refused, told } from "./api.ts";
import { EventReader, type ServerEvent } from "./events.ts";
import { ENTRIES_ASKED, type Store } from "./store.ts";

/** The server writes a comment each 10 s: after three of them that did not come, it is gone. */
const SILENCE = 30_000;
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;

/** Keeps the store live: reads the stream, and comes back when it was lost. */
export class Stream {
  #wait = FIRST_WAIT;
  #stop = new AbortController();
  #wake: () => void = () => undefined;

  constructor(
    private readonly api: Api,
    private readonly store: Store,
    private readonly refused: (status: number, sentence: string) => void,
  ) {}

  start(): void {
    void this.#run(this.#stop.signal);
  }

  stop(): void {
    this.#stop.abort();
    this.#wake();
  }

  /** Instead of waiting longer. */
  again(): void {
    this.#wake();
  }

  async #run(stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const why = await this.#once(stop);
      if (stop.aborted || why === null) return;
      const now = Date.now();
      const before = this.store.connection;
      this.store.connected({
        kind: "lost",
        since: before.kind === "lost" ? before.since : this.store.clock.now(),
        why,
        retryAt: now + this.#wait,
      });
      await this.#pause(this.#wait);
      this.#wait = Math.min(LONGEST_WAIT, this.#wait * 2);
    }
  }

  /** Reads until the stream ends; says why it did, or null where there is no use in coming back. */
  async #once(stop: AbortSignal): Promise<string | null> {
    const attempt = new AbortController();
    const abort = (): void => attempt.abort();
    stop.addEventListener("abort", abort);
    let silence = window.setTimeout(abort, SILENCE);
    try {
      const answer = await this.api.open("/api/stream", attempt.signal);
      const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
      if (reader === undefined) return "the server sent nothing";
      const events = new EventReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return "the server ended the stream";
        window.clearTimeout(silence);
        silence = window.setTimeout(abort, SILENCE);
        for (const event of events.feed(value)) this.#take(event);
      }
    } catch (error) {
      if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
        this.refused(error.status, error.message);
        return null;
      }
      return attempt.signal.aborted ? "the server has been silent for 30 s" : told(error);
    } finally {
      window.clearTimeout(silence);
      stop.removeEventListener("abort", abort);
      attempt.abort();
    }
  }

  #take(event: ServerEvent): void {
    switch (event.name) {
      case "frame":
        this.#wait = FIRST_WAIT;
        this.store.frame(JSON.parse(event.data) as Frame);
        this.store.connected({ kind: "live" });
        void this.#past();
        return;
      case "change":
        this.store.change(JSON.parse(event.data) as Change);
        return;
      case "entries":
        this.store.append(JSON.parse(event.data) as Entry[]);
        return;
    }
  }

  /** What was before the stream began. The page is of use without it. */
  async #past(): Promise<void> {
    try {
      this.store.replaceEntries(await this.api.get<Entry[]>(`/api/entries?limit=${ENTRIES_ASKED}`));
      this.store.replaceCost((await this.api.get<History>("/api/history")).cost);
    } catch {
      // The stream itself says what is wrong with the server.
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = window.setTimeout(resolve, milliseconds);
      this.#wake = () => {
        window.clearTimeout(timer);
        resolve();
      };
    });
  }
}
