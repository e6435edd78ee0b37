import type { PrintsOfModel } from "../../processor/prints-by-model.js";
import { whole } from "./figures.js";
import { strings } from "./strings.js";
import { id } from "./table.js";
import { TablePanel } from "./table-panel.js";

const words = strings.models;
const prints = (of: readonly PrintsOfModel[]) => of.reduce((sum, one) => sum + one.persons + one.fraudsters, 0);

/** Which models made the scope's prints. */
export const modelsPanel = () =>
  new TablePanel<PrintsOfModel>(words, (one) => [
    one.calibrationModelId || strings.none,
    one.isOfNewPrints ? words.ofNewPrints : one.isScored ? words.scored : words.obsolete,
    whole(one.persons),
    whole(one.fraudsters),
    id(one.revision),
  ]);

/** How many prints have moved to the model of new prints; `null` if all have. */
export function moved(models: readonly PrintsOfModel[]) {
  const [done, all] = [prints(models.filter(({ isOfNewPrints }) => isOfNewPrints)), prints(models)];
  return done < all ? { text: words.moved(whole(done), whole(all)), command: "npx vivavoce model migrate" } : null;
}
