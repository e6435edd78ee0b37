import type { Store } from "../store/port.js";

export type Documents = Store["documents"];

/** One collection of the store's documents, typed. */
export interface Collection<T> {
  get(id: string): Promise<T | null>;
  insert(id: string, document: T, expiresAt?: number | null): Promise<boolean>;
  put(id: string, document: T, expiresAt?: number | null): Promise<void>;
  /** Runs in one transaction: the value that `change` returns is written, `null` deletes, `undefined` changes nothing. */
  update(id: string, change: (document: T | null) => T | null | undefined): Promise<void>;
  delete(id: string): Promise<boolean>;
  list(): Promise<T[]>;
}

export function collection<T>(documents: Documents, name: string): Collection<T> {
  return {
    get: async (id) => (await documents.get(name, id)) as T | null,
    insert: (id, document, expiresAt) => documents.insert(name, id, document, expiresAt ?? null),
    put: (id, document, expiresAt) => documents.put(name, id, document, expiresAt ?? null),
    update: (id, change) => documents.update(name, id, (document) => change(document as T | null)),
    delete: (id) => documents.delete(name, id),
    list: async () => (await documents.list(name)).map(({ document }) => document as T),
  };
}
