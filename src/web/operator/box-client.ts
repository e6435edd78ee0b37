/** Sends requests to the box with the token of the signed-in user. */
import type { OperatorAnswers } from "../../server/operator/view.js";
import { applicationsOver } from "../../token/applications-client.js";
import { answerOf, refusalOf } from "./answer.js";
import type { PageOfScope } from "./paged-table.js";
import { beginSignIn, type SignedIn } from "./sign-in.js";

/** The user is signed in but not allowed. All error messages of this client are in the reader's language. */
export class Refused extends Error {
  override readonly name = "Refused";
  constructor(
    message: string,
    /** The user is known; otherwise the session has ended. */
    readonly isForbidden: boolean,
  ) {
    super(message);
  }
}

/** The requested item does not exist, or was deleted. */
export class NotFound extends Error {
  override readonly name = "NotFound";
}

/** A token rejected this soon has not expired, so signing in again would only repeat forever. */
const freshMs = 10_000;
const rowsOfPage = "10";

export class BoxClient {
  /** While the box ends the session, a poll that it refuses must not lead to a new sign-in. */
  #isSigningOut = false;

  constructor(readonly signedIn: SignedIn) {}

  readonly box = () => this.#get("box");
  readonly load = (since: number) => this.#get("load", { since: String(since) });
  readonly calls = () => this.#get("calls");
  readonly decisions = (scope: string) => this.#get("decisions", { scope, limit: "25" });
  readonly profiles = ({ scope, after, filters }: PageOfScope) =>
    this.#get("profiles", { ...filters, scope, after, limit: rowsOfPage });
  readonly sessions = ({ scope, after, filters }: PageOfScope) =>
    this.#get("sessions", { ...filters, scope, after, limit: rowsOfPage });
  readonly watchlists = ({ scope, after }: PageOfScope) => this.#get("watchlists", { scope, after, limit: rowsOfPage });
  readonly applicationsPage = ({ after, filters }: PageOfScope) =>
    this.#get("applications", { ...filters, after, limit: rowsOfPage });
  readonly models = (scope: string) => this.#get("models", { scope });
  readonly promises = () => this.#get("promises");
  readonly evaluation = () => this.#get("evaluation");

  readonly profile = (scope: string, id: string) =>
    this.#ask<OperatorAnswers["profile"]>("GET", itemPath("profiles", scope, id));
  readonly session = (scope: string, id: string) =>
    this.#ask<OperatorAnswers["session"]>("GET", itemPath("sessions", scope, id));
  readonly eraseProfile = (scope: string, id: string) => this.#ask<void>("DELETE", itemPath("profiles", scope, id));
  readonly noteConsent = (scope: string, id: string, state: "given" | "withdrawn", reference: string) =>
    this.#ask<void>("PUT", itemPath("profiles", scope, id, "/consent"), { state, reference });

  readonly changePassword = (current: string, password: string) =>
    this.#manage<void>("PUT", "/me/password", { current, password });
  readonly signOut = async () => {
    this.#isSigningOut = true;
    try {
      await this.#manage<void>("POST", "/me/sign-out");
    } catch (error) {
      this.#isSigningOut = false;
      throw error;
    }
  };

  readonly applications = applicationsOver((...request) => this.#manage(...request));

  #get<Name extends keyof OperatorAnswers>(
    name: Name,
    query: Readonly<Record<string, string>> = {},
  ): Promise<OperatorAnswers[Name]> {
    return this.#ask("GET", `/operator/v1/${name}?${new URLSearchParams(query)}`);
  }

  #manage<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    return this.#ask(method, `/management/v1${path}`, body);
  }

  async #ask<Body>(method: string, path: string, body?: unknown): Promise<Body> {
    const response = await answerOf(path, {
      method,
      headers: {
        authorization: `Bearer ${this.signedIn.token}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.ok) return response.body as Body;
    const { status } = response;
    // Leaving the page would lose what was typed into a question, or a secret that is shown once. Details must not stay on the screen.
    const mayLeave = !this.#isSigningOut && document.querySelector("dialog.small[open]") === null;
    if (status === 401 && mayLeave && Date.now() - this.signedIn.at > freshMs) return beginSignIn();
    const why = refusalOf(response);
    if (status === 401 || status === 403) throw new Refused(why, status === 403);
    throw status === 404 ? new NotFound(why) : new Error(why);
  }
}

const itemPath = (kind: "profiles" | "sessions", scope: string, id: string, of = "") =>
  `/operator/v1/${kind}/${encodeURIComponent(id)}${of}?${new URLSearchParams({ scope })}`;
