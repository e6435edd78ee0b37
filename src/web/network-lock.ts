/** Proof that nothing leaves the device: the page blocks its own connections, and counts requests made afterwards. */
export class NetworkLock {
  locked = false;
  /** Made since it is locked. */
  requests = 0;

  constructor(private readonly changed: () => void) {
    for (const name of ["online", "offline"]) addEventListener(name, changed);
  }

  /** A document can add policies but not remove them, so this one stays until the page is reloaded. */
  lock(): void {
    if (this.locked) return;
    const policy = document.createElement("meta");
    policy.httpEquiv = "Content-Security-Policy";
    policy.content = "connect-src 'none'";
    document.head.append(policy);
    this.locked = true;
    const since = performance.now();
    new PerformanceObserver((list) => {
      this.requests += list.getEntries().filter(({ startTime, name }) => startTime > since && !isOwnFile(name)).length;
      this.changed();
    }).observe({ type: "resource" });
    this.changed();
  }
}

/** The page's own files that a browser may load late: the icon, the script of a worker, and that of the audio thread. */
const ownFiles = ["icon.svg", "worker.js", "capture-worklet.js"].map((name) => new URL(name, import.meta.url).href);
const isOwnFile = (url: string) => ownFiles.includes(url);
