/**
 * The models that prints are made and scored by. Each scope has one that its new prints use; a print of another is scored
 * by its own model until it has moved.
 */
import type { Engine } from "../engine/port.js";
import type { Id } from "../store/port.js";

export interface Models {
  /** The engine of this scope's new prints. */
  of(scopeId: Id): Engine;
  /** Whether prints of this revision can be scored here. */
  has(revision: string): boolean;
  /** The engine of this revision, opened when it is first needed; rejects for one that `has` denies. */
  open(revision: string): Promise<Engine>;
}

export const oneModel = (engine: Engine): Models => ({
  of: () => engine,
  has: (revision) => revision === engine.model.revision,
  async open(revision) {
    if (revision === engine.model.revision) return engine;
    throw new Error(`no model of revision ${revision} is open`);
  },
});
