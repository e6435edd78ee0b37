/**
 * What the token services write to an operator's log. Only names we issued are logged: an unknown name may be a secret
 * typed into the wrong field. Secrets, tokens and codes are never logged.
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
  /** An unexpected error; `stack` is from our own code. */
  | { readonly event: "failure"; readonly stack: string };

/** Receives events about credentials. */
export type Audit = (event: AuditEvent) => void;

const OURS = /^(?:appID:[\w.-]{1,64}:geo:[\w.-]{1,64}:clientName:[\w.-]{1,64}|(?:platform|engagement)-[0-9a-f-]{36})$/;

/** The client id if it has the form we issue, else null: only then may it be logged. */
export const loggableClientId = (clientId: string): string | null => (OURS.test(clientId) ? clientId : null);

/** The part of a structured logger that the audit needs. */
export interface AuditLog {
  info(message: string, fields: { client?: string; address?: string; operation?: string; status?: string }): void;
  warn(message: string, fields: { client?: string; address?: string }): void;
  error(message: string, fields: { stack: string }): void;
}

/** Writes events to a log; ids that we did not issue are left out. */
export const auditTo =
  (log: AuditLog): Audit =>
  (event) => {
    switch (event.event) {
      case "token-issued":
        return log.info(`${event.audience} token issued`, { client: event.clientId, address: event.address });
      case "client-refused":
        return log.warn(`${event.audience} client refused`, {
          ...(event.clientId !== null && { client: event.clientId }),
          address: event.address,
        });
      case "sign-in":
        return log.info("signed in", { client: event.user, address: event.address });
      case "sign-in-refused":
        return log.warn("sign-in refused", {
          ...(event.user !== null && { client: event.user }),
          address: event.address,
        });
      case "managed":
        return log.info("managed", {
          client: event.user,
          operation: `${event.method} ${event.route}`,
          status: String(event.status),
        });
      case "failure":
        return log.error("a request of the token service failed", { stack: event.stack });
    }
  };
