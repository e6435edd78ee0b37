/** The proof that nothing leaves: the page takes the right to connect away from itself, and counts what is asked for afterwards. */
export class NetworkLock {
  #locked = false;
  #requests = 0;
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
    for (const name of ["online", "offline"]) addEventListener(name, changed);
  }

  get locked(): boolean {
    return this.#locked;
  }
  get requests(): number {
    return this.#requests;
  }

  /** Policies only add up: a document cannot drop this one until it is reloaded. */
  lock(): void {
    if (this.#locked) return;
    const policy = document.createElement("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "connect-src 'none'";
    document.head.append(policy);
    this.#locked = true;
    const since = performance.now();
    new PerformanceObserver((list) => {
      this.#requests += list.getEntries().filter(({ startTime, name }) => startTime > since && !isOwnFile(name)).length;
      this.#changed();
    }).observe({ type: "resource" });
    this.#changed();
  }
}

/** The page's own script for the audio thread, loaded with the first recording. */
const isOwnFile = (url: string) => url === new URL("./capture-worklet.js", import.meta.url).href;
