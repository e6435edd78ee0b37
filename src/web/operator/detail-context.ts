/** What the detail views of profiles and sessions need. */
import type { BoxClient } from "./box-client.js";
import type { Opening } from "./table.js";

export interface Opens {
  readonly profiles: Opening;
  readonly sessions: Opening;
}

export interface DetailContext {
  readonly client: BoxClient;
  readonly scope: string;
  readonly calibration: string;
  readonly opens: Opens;
  /** Called after a change, to reload the tables. */
  readonly changed: () => void;
  readonly showSessionsOf: (owner: string) => void;
}

/** The dialog in which the details are shown. */
export interface DetailDialog {
  close(): void;
  /** Loads and shows the details again. */
  again(): void;
}
