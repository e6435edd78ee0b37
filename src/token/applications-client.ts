/** Applications over the management interface of a box, in programs and pages. */
import type { Applications } from "./applications.js";

/** Sends a request to a path of the interface; resolves to its answer. */
export type ManagementCall = <Answer>(method: string, path: string, body?: unknown) => Promise<Answer>;

const part = encodeURIComponent;

export function applicationsOver(call: ManagementCall): Omit<Applications, "authenticate"> {
  const path = (id: string): string => `/applications/${part(id)}`;
  const client = (id: string, clientId: string): string => `${path(id)}/clients/${part(clientId)}`;
  return {
    create: (application) => call("POST", "/applications", application),
    get: (id) => call("GET", path(id)),
    list: () => call("GET", "/applications"),
    rename: (id, names) => call("PATCH", path(id), names),
    delete: (id) => call("DELETE", path(id)),
    putGeography: (id, geography, settings) => call("PUT", `${path(id)}/geographies/${part(geography)}`, settings),
    createClient: (id, given) => call("POST", `${path(id)}/clients`, given),
    deleteClient: (id, clientId) => call("DELETE", client(id, clientId)),
    bindScopes: (id, clientId, gkScopes) => call("PUT", `${client(id, clientId)}/scopes`, { gkScopes }),
    regenerateSecret: async (id, clientId) =>
      (await call<{ clientSecret: string }>("POST", `${client(id, clientId)}/secret`)).clientSecret,
  };
}
