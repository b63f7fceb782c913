/** The cluster's clock, as far as the last frame told it: instants are compared with it and never with the reader's own. */
export class Clock {
  #at = Date.now();
  #heard = performance.now();
  /** How many seconds of the cluster pass in one of the reader's. */
  speed = 1;

  set(at: string): void {
    const told = Date.parse(at);
    if (Number.isNaN(told)) return;
    this.#at = told;
    this.#heard = performance.now();
  }

  now(): number {
    return this.#at + (performance.now() - this.#heard) * this.speed;
  }
}
