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
  /** What we did not foresee; `stack` is our code's. */
  | { readonly event: "failure"; readonly stack: string };

/** Hears what happens to credentials. */
export type Audit = (event: AuditEvent) => void;

const OURS = /^(?:appID:[\w.-]{1,64}:geo:[\w.-]{1,64}:clientName:[\w.-]{1,64}|(?:platform|engagement)-[0-9a-f-]{36})$/;

/** The client id for a log, where it has the form of one of ours. */
export const loggableClientId = (clientId: string): string | null => (OURS.test(clientId) ? clientId : null);

/** The part of a structured log that audit lines need. */
interface AuditLog {
  info(message: string, fields: { client?: string; address?: string; operation?: string; status?: string }): void;
  warn(message: string, fields: { client?: string; address?: string }): void;
  error(message: string, fields: { stack: string }): void;
}

/** Writes events to a log; ids that are not ours are left out. */
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
        return log.error("token service failed", { stack: event.stack });
    }
  };
