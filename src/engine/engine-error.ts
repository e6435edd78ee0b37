/** Error codes of the engine. */
export type EngineErrorCode =
  /** Samples that are not finite numbers, or no samples where some are required. */
  | "BAD_SAMPLES"
  | "BAD_RATE"
  /** An embedding that is not a unit vector of this model's length. */
  | "BAD_EMBEDDING"
  /** A template or embedding made by another network: never scored. */
  | "OTHER_REVISION"
  | "TOO_MANY_SEGMENTS"
  | "GALLERY_FULL"
  | "BAD_ARGUMENT"
  | "BAD_MODEL"
  /** An invalid calibration file, or one fitted to another model. */
  | "BAD_CALIBRATION"
  | "NOT_SUPPORTED"
  /** The queue of calls is full: try again after `retryAfterMs`. */
  | "QUEUE_FULL"
  | "TIMEOUT"
  /** The thread that worked on the call died. It is replaced; the call can be retried. */
  | "WORKER_LOST"
  /** No thread can be started (no memory, no threads left). It is tried again from time to time. */
  | "NO_WORKERS"
  | "CLOSED";

/** The engine did not answer; `code` says why. */
export class EngineError extends Error {
  override readonly name: string = "EngineError";
  /** Set with QUEUE_FULL. */
  readonly retryAfterMs: number | null;

  constructor(
    readonly code: EngineErrorCode,
    message: string,
    options: { retryAfterMs?: number; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

export const badModel = (message: string): EngineError => new EngineError("BAD_MODEL", message);
export const badArgument = (message: string): EngineError => new EngineError("BAD_ARGUMENT", message);

/** The model does not support what was asked for. */
export class NotSupportedError extends EngineError {
  override readonly name = "NotSupportedError";

  constructor(message: string) {
    super("NOT_SUPPORTED", message);
  }
}
