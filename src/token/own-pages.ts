/**
 * Pages that the box itself serves and that speak in the name of who signs in. A page can keep no secret: it proves with PKCE that the code
 * is its own, and codes go to its own address only. Any user may sign in to it; what it asks for is judged by the user's role.
 */
export interface OwnPage {
  readonly clientId: string;
  /** Where it lies at the issuer; also where codes are sent. */
  readonly path: string;
}

export const OPERATOR_PAGE: OwnPage = { clientId: "vivavoce-operator", path: "/operator/" };
