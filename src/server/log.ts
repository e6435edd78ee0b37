/** How important a line of the log is. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** Fields that a log line may have. The list is closed, so that no audio, embedding or name of a person can slip in. */
export interface LogFields {
  readonly requestId?: string;
  readonly operation?: string;
  readonly protocol?: string;
  readonly client?: string;
  readonly status?: string;
  readonly milliseconds?: number;
  readonly queuedMilliseconds?: number;
  readonly bytes?: number;
  readonly address?: string;
  readonly signal?: string;
  readonly running?: number;
  readonly version?: string;
  readonly store?: string;
  readonly model?: string;
  readonly calibration?: string;
  /** When a certificate expires, as an ISO time. */
  readonly expires?: string;
  /** Name of a telephone line. */
  readonly line?: string;
  /** Id of the session of a telephone call. */
  readonly session?: string;
  /** Why something was refused or failed, in words. */
  readonly reason?: string;
  /** The stack of an unexpected error: our code, never a caller's data. */
  readonly stack?: string;
}

/** The log of a box. Fields have no audio, no embeddings, no names. */
export type Log = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

const ORDER: readonly LogLevel[] = ["debug", "info", "warn", "error"];

let isStderrWatched = false;

/** A full disk or a closed pipe loses lines of the log, but must not end the box. */
function watchStderr(): void {
  if (!isStderrWatched) process.stderr.on("error", () => {});
  isStderrWatched = true;
}

const writeToStderr = (line: string): void => {
  process.stderr.write(line);
};

/** One JSON object per line. */
export function jsonLog(
  level: LogLevel | "silent",
  write: (line: string) => void = writeToStderr,
  now: () => Date = () => new Date(),
): Log {
  // Now, not with the first line: each worker of an engine adds a listener, and after ten Node warns of a leak.
  if (write === writeToStderr) watchStderr();
  const least = level === "silent" ? ORDER.length : ORDER.indexOf(level);
  const at =
    (line: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (ORDER.indexOf(line) < least) return;
      write(`${JSON.stringify({ time: now().toISOString(), level: line, message, ...fields })}\n`);
    };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

const MOST_LINES_A_MINUTE = 100;

/** For lines that strangers can cause as often as they like: what exceeds the limit of a minute is counted in one line at its end. */
export function limitedLog(log: Log): Log {
  const counts = new Map<string, number>();
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      const count = (counts.get(message) ?? 0) + 1;
      counts.set(message, count);
      if (count === 1) setTimeout(sumUp, 60_000, level, message).unref();
      if (count <= MOST_LINES_A_MINUTE) log[level](message, fields);
    };
  const sumUp = (level: LogLevel, message: string) => {
    const more = counts.get(message)! - MOST_LINES_A_MINUTE;
    counts.delete(message);
    if (more > 0) log[level]("lines were left out, to save the disk", { reason: `${more} more like "${message}"` });
  };
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
