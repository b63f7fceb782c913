/** Asks the server. The token is kept here, in memory, and is gone with the page. */

export interface About {
  readonly authentication: "none" | "bearer";
  readonly version?: string;
  readonly cluster?: string;
  readonly leader?: string;
  readonly since?: string;
  readonly mode?: string;
  readonly speed?: number | null;
}

/** What the server answered instead of what was asked for. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    sentence: string,
  ) {
    super(sentence);
  }
}

export class Api {
  #token = "";

  get hasToken(): boolean {
    return this.#token !== "";
  }

  use(token: string): void {
    this.#token = token;
  }

  async open(path: string, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {};
    if (this.#token !== "") headers["Authorization"] = `Bearer ${this.#token}`;
    const answer = await fetch(path, { headers, cache: "no-store", credentials: "omit", signal: signal ?? null });
    if (!answer.ok) throw new Refused(answer.status, await sentence(answer));
    return answer;
  }

  async get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await (await this.open(path, signal)).json()) as T;
  }
}

async function sentence(answer: Response): Promise<string> {
  const text = (await answer.text()).slice(0, 4000);
  try {
    const said = JSON.parse(text) as { error?: unknown };
    if (typeof said.error === "string") return said.error;
  } catch {
    // Not JSON: the text itself is what was said.
  }
  return text.trim() || `the server answered with status ${answer.status}`;
}

/** The sentence of whatever went wrong. */
export function told(error: unknown): string {
  if (error instanceof Refused) return error.message;
  if (error instanceof TypeError) return "the server does not answer";
  return error instanceof Error ? error.message : String(error);
}
