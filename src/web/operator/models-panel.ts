import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import { element } from "../dom.js";
import { strings } from "./strings.js";
import { id, Table } from "./table.js";

const words = strings.models;

/** Which models made the scope's prints, and how far they have moved to that of new prints. */
export class ModelsPanel {
  readonly #table = new Table(words.heading, words.columns);
  readonly #progress = element("p", { class: "note", role: "status" });
  readonly element = element(
    "section",
    { class: "card" },
    element("h2", {}, words.heading),
    element("p", { class: "note" }, words.note),
    this.#table.element,
    this.#progress,
  );

  show(models: readonly PrintsOfModel[]): void {
    this.#table.show(
      models,
      ({ calibrationModelId, revision, persons, fraudsters, isOfNewPrints, isScored }) => [
        calibrationModelId || "–",
        isOfNewPrints ? words.ofNewPrints : isScored ? words.scored : words.obsolete,
        words.count(persons),
        words.count(fraudsters),
        id(revision),
      ],
      words.none,
    );
    const prints = (of: readonly PrintsOfModel[]) => of.reduce((sum, one) => sum + one.persons + one.fraudsters, 0);
    const [moved, all] = [prints(models.filter(({ isOfNewPrints }) => isOfNewPrints)), prints(models)];
    this.#progress.replaceChildren(
      ...(moved < all ? [words.moved(moved, all), " ", element("code", {}, words.how)] : []),
    );
  }
}
