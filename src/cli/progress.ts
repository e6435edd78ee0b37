import cliProgress from "cli-progress";

// Not by name: Node finds not all names of this CommonJS module.
const { Format, Presets, SingleBar } = cliProgress;

export interface ProgressDisplay {
  /** Starts a bar; the previous one ends. */
  start(title: string, total: number): void;
  set(done: number): void;
  stop(): void;
}

/** A progress bar on a terminal that can draw one; nothing otherwise. */
export function createProgress(shown: boolean): ProgressDisplay {
  if (!shown || !process.stderr.isTTY || process.env.TERM === "dumb") return { start() {}, set() {}, stop() {} };
  let bar: cliProgress.SingleBar | null = null;
  return {
    start(title, total) {
      bar?.stop();
      bar = new SingleBar(
        {
          barsize: Math.max(8, Math.min(40, process.stderr.columns - 52)),
          // Cut to the width of the terminal. Otherwise the terminal itself is told to, and an interruption leaves it so.
          linewrap: true,
          // Without progress the time is a word, of which the usual format shows the end.
          formatTime: (seconds, ...more) => (Number.isFinite(seconds) ? Format.TimeFormat(seconds, ...more) : "–"),
          format: `${title.padEnd(12)} {bar} {percentage}% | {value}/{total} | {eta_formatted}`,
          stream: process.stderr,
        },
        Presets.shades_classic,
      );
      bar.start(total, 0);
    },
    set(done) {
      bar?.update(done);
    },
    stop() {
      bar?.stop();
      bar = null;
    },
  };
}
