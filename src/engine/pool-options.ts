/** Separate from the pool, so that the published types need no types of browsers, such as `Transferable`. */
export interface PoolOptions {
  readonly workers: number;
  /** Limit on calls to the engine that are running or waiting; further calls are refused. */
  readonly maxCalls: number;
  /** Time limit of one piece of work (seconds of audio, one window) in a worker. */
  readonly workLimitMs: number;
  /** How long a worker may continue with abandoned work before it is replaced. */
  readonly graceMs: number;
}
