import type { Stage } from "./stage.js";
import type { Voices } from "./voices.js";

/** One of the page's four tabs. */
export interface Mode {
  /** Shown above the stage: the choice of the person. */
  readonly controls: HTMLElement;
  /** Shown below the stage: the result. */
  readonly outcome: HTMLElement;
  /** Called whenever the tab is opened. Takes the stage, or leaves it empty. */
  open(stage: Stage): Promise<void>;
}

export type WhenReady = () => Promise<Voices>;
