import type { Stage } from "./stage.js";
import type { Voices } from "./voices.js";

/** One of the page's four tabs. */
export interface Mode {
  /** Above the stage: the person it is about. */
  readonly controls: HTMLElement;
  /** Below it: what came of it. */
  readonly outcome: HTMLElement;
  /** Called whenever the tab is opened. Takes the stage, or hides it. */
  open(stage: Stage): Promise<void>;
}

export type WhenReady = () => Promise<Voices>;
