/** One server-sent event. */
export interface ServerEvent {
  readonly name: string;
  readonly data: string;
}

/** Splits a stream of text into events (HTML Living Standard, 9.2.6), as far as we need it: `event`, `data`, comments. */
export class EventReader {
  #rest = "";

  *feed(text: string): Generator<ServerEvent> {
    this.#rest += text;
    for (;;) {
      const end = /\r?\n\r?\n/.exec(this.#rest);
      if (end === null) return;
      const block = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      const event = parsed(block);
      if (event !== null) yield event;
    }
  }
}

function parsed(block: string): ServerEvent | null {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const field = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
  return data.length === 0 ? null : { name, data: data.join("\n") };
}
