import { SealError, StoreError } from "./errors.js";

/** What else happens to what goes into a store and comes out. */
export interface Guard {
  /** Turns what the database throws into an error of a store. */
  readonly faultOf?: (error: unknown) => unknown;
  /** Applied to arguments and answers. */
  readonly across?: (value: unknown) => unknown;
}

/** The same parts of a store; their methods throw once it is closed, also those that were waiting for the database then. */
export function refuseWhenClosed<Parts extends object>(
  parts: Parts,
  isClosed: () => boolean,
  guard: Guard = {},
): Parts {
  return Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, guarded(part, isClosed, guard)]),
  ) as Parts;
}

type Method = (...values: unknown[]) => Promise<unknown> | AsyncIterable<unknown>;

function guarded(
  part: object,
  isClosed: () => boolean,
  { faultOf = (error) => error, across = (value) => value }: Guard,
): object {
  const assertOpen = () => {
    if (isClosed()) throw closed();
  };
  const rethrow = (error: unknown): never => {
    const fault = faultOf(error);
    // A database that is being closed does not answer either.
    const isClear = fault instanceof SealError || (fault instanceof StoreError && fault.code !== "unavailable");
    throw isClosed() && !isClear ? closed(fault) : fault;
  };
  async function* items(method: Method, values: unknown[]): AsyncIterable<unknown> {
    assertOpen();
    try {
      yield* method(...values) as AsyncIterable<unknown>;
    } catch (error) {
      rethrow(error);
    }
  }
  const answer = async (method: Method, values: unknown[]) => {
    assertOpen();
    return across(await (method(...values.map(across)) as Promise<unknown>).catch(rethrow));
  };
  const methods = Object.entries(part).map(([name, method]: [string, Method]) => [
    name,
    (...values: unknown[]) => (name === "prints" ? items(method, values) : answer(method, values)),
  ]);
  return Object.fromEntries(methods);
}

const closed = (cause?: unknown): StoreError => new StoreError("closed", "the store is closed", { cause });
