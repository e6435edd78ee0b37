/** Separate from the pool, so that the published types need no types of browsers, such as `Transferable`. */
export interface PoolOptions {
  readonly workers: number;
  /** Limit on calls to the engine that are running or waiting; further calls are refused. By default 64 for each worker. */
  readonly maxCalls: number;
  /** Time limit of one piece of work (seconds of audio, one window) in a worker. A minute by default. */
  readonly workLimitMs: number;
  /** How long a worker may continue with abandoned work before it is replaced. Half a second by default. */
  readonly graceMs: number;
}
