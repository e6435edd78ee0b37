/** What the details of a profile or session are shown with. */
import type { BoxClient } from "./box-client.js";

export interface Opens {
  readonly profile: (id: string) => void;
  readonly session: (id: string) => void;
}

export interface DetailContext {
  readonly client: BoxClient;
  readonly scope: string;
  readonly calibration: string;
  readonly opens: Opens;
  /** Something was changed: tables are asked for again. */
  readonly changed: () => void;
  readonly showSessionsOf: (owner: string) => void;
}
