/**
 * The models that make and score prints. Each scope has one model for its new prints; a print of another model is scored
 * by that model until it has moved.
 */
import type { Engine } from "../engine/port.js";
import type { Id } from "../store/port.js";

/** The models of a processor. */
export interface Models {
  /** The engine for new prints of this scope. */
  of(scopeId: Id): Engine;
  /** Whether prints of this revision can be scored here. */
  has(revision: string): boolean;
  /** The engine of this revision, opened when first needed; rejects if `has(revision)` is false. */
  open(revision: string): Promise<Engine>;
}

export const oneModel = (engine: Engine): Models => ({
  of: () => engine,
  has: (revision) => revision === engine.model.revision,
  async open(revision) {
    if (revision === engine.model.revision) return engine;
    throw new Error(`no loaded model has the revision ${revision}`);
  },
});
