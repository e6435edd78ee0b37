/** Shows how many of a scope's prints have moved from one model to another. */
import type { Id } from "../store/port.js";
import type { Dependencies } from "./dependencies.js";

/** How many prints of a scope one model made. */
export interface PrintsOfModel {
  readonly revision: string;
  /** Such as `vivavoce-2`; empty if the print does not contain it and the model is not installed here. */
  readonly calibrationModelId: string;
  readonly persons: number;
  readonly fraudsters: number;
  /** Whether the scope's new prints use this model. */
  readonly isOfNewPrints: boolean;
  /** Whether prints of this model can be scored here. */
  readonly isScored: boolean;
}

/** How many prints each model made; the model for new prints comes first. */
export async function printsByModel({ models, galleries }: Dependencies, scopeId: Id): Promise<PrintsOfModel[]> {
  const { model } = models.of(scopeId);
  const persons = await galleries.search(scopeId, "person", (loaded) => loaded.counts());
  const fraudsters = await galleries.search(scopeId, "fraudster", (loaded) => loaded.counts());
  const revisions = [...new Set([model.revision, ...persons.keys(), ...fraudsters.keys()])];
  return revisions.map((revision) => ({
    revision,
    calibrationModelId:
      revision === model.revision
        ? model.calibrationModelId
        : (persons.get(revision) ?? fraudsters.get(revision))!.calibrationModelId,
    persons: persons.get(revision)?.prints ?? 0,
    fraudsters: fraudsters.get(revision)?.prints ?? 0,
    isOfNewPrints: revision === model.revision,
    isScored: models.has(revision),
  }));
}
