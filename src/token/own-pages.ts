/**
 * Pages that the box itself serves and that act for the signed-in user. A page cannot keep a secret, so it uses PKCE, and codes are sent
 * only to its own address. Any user may sign in; the user's role decides what is allowed.
 */
export interface OwnPage {
  readonly clientId: string;
  /** Path of the page at the issuer; codes are sent there too. */
  readonly path: string;
}

export const OPERATOR_PAGE: OwnPage = { clientId: "vivavoce-operator", path: "/operator/" };
