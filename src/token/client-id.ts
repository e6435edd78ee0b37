import { invalidRequest } from "./errors.js";

/** `appID:<unique_id>:geo:<geography>:clientName:<client_name>` */
export interface ClientIdParts {
  readonly applicationId: string;
  readonly geography: string;
  readonly clientName: string;
}

/** Characters allowed between the colons: none that a header, a shell or a URL would change. */
const SEGMENT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

export function checkSegment(what: string, value: string): string {
  if (!SEGMENT.test(value))
    throw invalidRequest(
      `${what} must have 1 to 64 characters of A-Z a-z 0-9 . _ - and begin with a letter or digit, got "${value}"`,
      "clientIdPart",
    );
  return value;
}

/** `appID:…:geo:…:clientName:…` */
export const formatClientId = ({ applicationId, geography, clientName }: ClientIdParts): string =>
  `appID:${checkSegment("application id", applicationId)}:geo:${checkSegment("geography", geography)}:clientName:${checkSegment("client name", clientName)}`;

/** The parts of a client id; `null` if the text is not a client id. */
export function parseClientId(text: string): ClientIdParts | null {
  const match = /^appID:([^:]+):geo:([^:]+):clientName:([^:]+)$/.exec(text);
  const [, applicationId = "", geography = "", clientName = ""] = match ?? [];
  return [applicationId, geography, clientName].every((segment) => SEGMENT.test(segment))
    ? { applicationId, geography, clientName }
    : null;
}
