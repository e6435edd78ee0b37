/**
 * What the token services tell an operator's log. Only names that we gave out stand here: a name that nobody has may be a secret
 * typed into the wrong field. Never a secret, a token or a code.
 */
export type AuditEvent =
  | {
      readonly event: "token-issued";
      readonly audience: string;
      readonly clientId: string;
      readonly scope: string;
      readonly jti: string;
      readonly address: string;
    }
  | {
      readonly event: "client-refused";
      readonly audience: string;
      readonly clientId: string | null;
      readonly address: string;
    }
  | { readonly event: "sign-in"; readonly user: string; readonly address: string }
  | { readonly event: "sign-in-refused"; readonly user: string | null; readonly address: string }
  | {
      readonly event: "managed";
      readonly user: string;
      readonly method: string;
      readonly route: string;
      readonly status: number;
    }
  | { readonly event: "failure"; readonly message: string };

export type Audit = (event: AuditEvent) => void;

const OURS = /^(?:appID:[\w.-]{1,64}:geo:[\w.-]{1,64}:clientName:[\w.-]{1,64}|(?:platform|engagement)-[0-9a-f-]{36})$/;

/** The client id for a log, where it has the form of one of ours. */
export const loggableClientId = (clientId: string): string | null => (OURS.test(clientId) ? clientId : null);
