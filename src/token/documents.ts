import type { Store } from "../store/port.js";
import type { Clock, Random } from "./clock.js";
import type { Secrets } from "./secret.js";

/** Where the token service keeps its records: `documents` of a store. */
export type Documents = Store["documents"];

/** What applications, users, credentials and registrations are kept with. */
export interface RecordParts {
  readonly documents: Documents;
  readonly clock: Clock;
  readonly random: Random;
  readonly secrets: Secrets;
}

/** One collection of the store's documents, typed. */
export const collection = <T>(documents: Documents, name: string) => ({
  get: async (id: string) => (await documents.get(name, id)) as T | null,
  insert: (id: string, document: T, expiresAt: number | null = null) => documents.insert(name, id, document, expiresAt),
  put: (id: string, document: T, expiresAt: number | null = null) => documents.put(name, id, document, expiresAt),
  /**
   * Runs in one transaction: the value that `change` returns is written, `null` deletes, `undefined` changes nothing. Resolves to that
   * value. If `change` throws, nothing is written. A store may run it again after a concurrent write.
   */
  async update<Next extends T | null | undefined>(id: string, change: (document: T | null) => Next): Promise<Next> {
    let next: Next | undefined;
    await documents.update(name, id, (document) => {
      next = change(document as T | null);
      return next;
    });
    return next as Next;
  },
  delete: (id: string) => documents.delete(name, id),
  list: async () => (await documents.list(name)).map(({ document }) => document as T),
});
