import type { FieldRate } from "../../voiceprint/field-rates.js";
import { roughPercent, whole } from "./figures.js";
import { strings } from "./strings.js";
import { badge } from "./table.js";
import { TablePanel } from "./table-panel.js";

const words = strings.promises;
type MetRate = FieldRate & { readonly met: NonNullable<FieldRate["met"]> };

/** Whether the promised rates hold for the real callers of this box. */
export const promisesPanel = () =>
  new TablePanel<MetRate>(words, ({ list, promised, met, comparisons, calls, verdict }) => [
    words.lists[list],
    roughPercent(promised),
    roughPercent(met.rate),
    strings.between(roughPercent(met.low), roughPercent(met.high)),
    whole(comparisons),
    whole(calls),
    badge("verdict", verdict, words.verdicts[verdict]),
  ]);

export const metRates = (rates: readonly FieldRate[]) => rates.filter((rate): rate is MetRate => rate.met !== null);

export const exceeded = (rates: readonly FieldRate[]) =>
  rates.some(({ verdict }) => verdict === "exceeded")
    ? { text: words.calibrate, command: "npx vivavoce calibrate recordings/" }
    : null;
