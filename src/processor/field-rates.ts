/** Counts of comparisons with watchlists and groups, kept in the store for all replicas together. */
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
/** How long counts may wait in memory before they go to the store with a later call. */
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
   * One call: `scored` are the best of `searched` prints, `matched` is the person who was found. Of a list that is too
   * long to be scored whole, the unscored count as below the threshold, for rates at which the scored can be expected to
   * hold all that exceed it.
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
    if (this.clock.now() - this.#lastKept >= keepMs) void this.keep().catch(() => {});
  }

  /** What all replicas have counted since the model and its calibration are these. */
  async read(): Promise<FieldRate[]> {
    await this.keep();
    const counts = countsOf(await this.store.documents.get(collection, this.#id));
    return countedLists.flatMap((list) => fieldRates(list, counts[list]));
  }

  /** Adds what was counted here to the store. What could not be added is added the next time. */
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

  /** Of the model that is counted for. */
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

/** What another version wrote and we cannot read counts as nothing. */
function countsOf(document: unknown): Counts {
  const stored = (document ?? {}) as Partial<Record<CountedList, Partial<RateCount>[]>>;
  const of = (list: CountedList) =>
    promisedRates.map((_, i) => {
      const count = { ...noCount, ...stored[list]?.[i] };
      return Object.values(count).every(Number.isFinite) ? count : noCount;
    });
  return { watchlist: of("watchlist"), group: of("group") };
}
