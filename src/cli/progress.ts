import { Presets, SingleBar } from "cli-progress";

export interface ProgressDisplay {
  /** Starts a bar; the previous one ends. */
  start(title: string, total: number): void;
  set(done: number): void;
  stop(): void;
}

/** A progress bar on a terminal; nothing otherwise. */
export function createProgress(shown: boolean): ProgressDisplay {
  if (!shown || !process.stderr.isTTY) return { start() {}, set() {}, stop() {} };
  let bar: SingleBar | null = null;
  return {
    start(title, total) {
      bar?.stop();
      bar = new SingleBar(
        {
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
