import { type ClientPassword, parseBasic } from "./basic.js";
import { knownClient } from "./client-credentials.js";
import { isProfileClientId } from "./credentials.js";
import { invalidRequest } from "./errors.js";
import type { Form } from "./form.js";
import type { TokenService } from "./service.js";

/** Reads client id and secret from the header or from the form (RFC 6749 §2.3.1), never from both. */
export function clientOf(header: string | null | undefined, form: Form): ClientPassword {
  if (form.has("client_assertion")) throw invalidRequest("client assertions are not supported; send the client secret");
  const secret = form.get("client_secret");
  const clientId = form.get("client_id");
  if (secret === undefined) {
    const client = parseBasic(header);
    if (clientId !== undefined && clientId !== client.clientId)
      throw invalidRequest("client_id in the form differs from that in the Authorization header");
    return client;
  }
  if (header) throw invalidRequest("send the client secret in the Authorization header or in the form, not both");
  if (clientId === undefined) throw invalidRequest("client_secret is sent without client_id; send both");
  return { clientId, secret };
}

/** An authenticated client, with the ids that decide which tokens it may introspect and revoke. */
export interface KnownClient {
  readonly clientId: string;
  /** For runtime clients: all clients of an application may introspect each other's tokens. */
  readonly applicationId: string | null;
}

export async function authenticated(
  service: Pick<TokenService, "applications" | "credentials" | "clientThrottle" | "audit">,
  client: ClientPassword,
  address: string,
): Promise<KnownClient> {
  const { clientId } = client;
  if (isProfileClientId(clientId)) {
    await knownClient(service, "tooling", client, address, service.credentials.authenticate);
    return { clientId, applicationId: null };
  }
  const { applicationId } = await knownClient(service, "runtime", client, address, service.applications.authenticate);
  return { clientId, applicationId };
}
