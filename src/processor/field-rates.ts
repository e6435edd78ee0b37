/** Counts comparisons with watchlists and groups. The counts are in the store, shared by all replicas. */
import type { Engine, Score } from "../engine/port.js";
import type { Store } from "../store/port.js";
import {
  addCounts,
  type CountedList,
  countedLists,
  countOfCall,
  type FieldRate,
  fieldRates,
  type ListCounts,
  noCount,
  promisedRates,
  type RateCount,
} from "../voiceprint/field-rates.js";

const collection = "field-rates";
/** How long counts may stay in memory before a later call writes them to the store. */
const keepMs = 10_000;

type Counts = Readonly<Record<CountedList, ListCounts>>;

const none: Counts = { watchlist: promisedRates.map(() => noCount), group: promisedRates.map(() => noCount) };

export class FieldRates {
  #pending: Counts = none;
  #lastKept: number;
  #keeping: Promise<void> = Promise.resolve();

  constructor(
    private readonly engine: Engine,
    private readonly store: Pick<Store, "documents">,
    private readonly clock: { now(): number },
  ) {
    this.#lastKept = clock.now();
  }

  /**
   * Counts one call: `scored` are the best of `searched` prints, `matched` is the person who was found. If the list is too
   * long to score all of it, the rest count as below the threshold; rates at which some of the rest may well exceed it
   * are not counted.
   */
  count<P extends { readonly score: Score }>(
    list: CountedList,
    scored: readonly P[],
    searched: number,
    matched: P | null,
  ): void {
    const impostors = list === "group" && matched ? scored.filter((one) => one !== matched) : scored;
    const comparisons = searched - (scored.length - impostors.length);
    if (comparisons <= 0) return;
    const counts = promisedRates.map((rate, i) => {
      const before = this.#pending[list][i]!;
      if (searched > scored.length && rate * searched > scored.length / 4) return before;
      const exceeded = impostors.filter(({ score }) => score.llr >= this.engine.threshold(rate, score)).length;
      return addCounts(before, countOfCall(comparisons, exceeded));
    });
    this.#pending = { ...this.#pending, [list]: counts };
    const age = this.clock.now() - this.#lastKept;
    // The clock may have been set back.
    if (age < 0 || age >= keepMs) void this.keep().catch(() => {});
  }

  /** What all replicas have counted for the current model and calibration. */
  async read(): Promise<FieldRate[]> {
    await this.keep();
    const counts = countsOf(await this.store.documents.get(collection, this.#id));
    return countedLists.flatMap((list) => fieldRates(list, counts[list]));
  }

  /** Adds the counts in memory to the store. After a failure they are added the next time. */
  keep(): Promise<void> {
    const kept = this.#keeping.then(async () => {
      const counted = this.#pending;
      if (counted === none) return;
      this.#pending = none;
      this.#lastKept = this.clock.now();
      try {
        await this.store.documents.update(collection, this.#id, (document) => add(countsOf(document), counted));
      } catch (error) {
        this.#pending = add(this.#pending, counted);
        throw error;
      }
    });
    this.#keeping = kept.catch(() => {});
    return kept;
  }

  /** The revision of the model whose rates are counted. */
  get revision(): string {
    return this.engine.model.revision;
  }

  get #id(): string {
    return `${this.revision}+${this.engine.model.calibrationRevision}`;
  }
}

const add = (one: Counts, other: Counts): Counts => ({
  watchlist: promisedRates.map((_, i) => addCounts(one.watchlist[i]!, other.watchlist[i]!)),
  group: promisedRates.map((_, i) => addCounts(one.group[i]!, other.group[i]!)),
});

/** A document that this version cannot read counts as empty. */
function countsOf(document: unknown): Counts {
  const stored = (document ?? {}) as Partial<Record<CountedList, Partial<RateCount>[]>>;
  const of = (list: CountedList) =>
    promisedRates.map((_, i) => {
      const count = { ...noCount, ...stored[list]?.[i] };
      return Object.values(count).every(Number.isFinite) ? count : noCount;
    });
  return { watchlist: of("watchlist"), group: of("group") };
}
