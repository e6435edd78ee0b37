/** Asks the box, in the name of who signed in. */
import type { OperatorAnswers } from "../../server/operator/view.js";
import { beginSignIn, type SignedIn } from "./sign-in.js";

/** The box knows who asks, and does not tell them. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** A token that is refused this soon is not refused for its age: signing in again would go round in circles. */
const freshMs = 10_000;

export class BoxClient {
  constructor(readonly signedIn: SignedIn) {}

  box() {
    return this.#get("box");
  }
  load(since: number) {
    return this.#get("load", { since: String(since) });
  }
  calls() {
    return this.#get("calls");
  }
  decisions(scope: string) {
    return this.#get("decisions", { scope, limit: "25" });
  }
  profiles(scope: string, after: string) {
    return this.#get("profiles", { scope, after, limit: "10" });
  }
  watchlists(scope: string, after: string) {
    return this.#get("watchlists", { scope, after, limit: "10" });
  }
  models(scope: string) {
    return this.#get("models", { scope });
  }
  promises() {
    return this.#get("promises");
  }
  evaluation() {
    return this.#get("evaluation");
  }

  async #get<Name extends keyof OperatorAnswers>(
    name: Name,
    query: Readonly<Record<string, string>> = {},
  ): Promise<OperatorAnswers[Name]> {
    const response = await fetch(`/operator/v1/${name}?${new URLSearchParams(query)}`, {
      headers: { authorization: `Bearer ${this.signedIn.token}` },
    });
    if (response.ok) return (await response.json()) as OperatorAnswers[Name];
    const { error_description } = (await response.json().catch(() => ({}))) as { error_description?: string };
    const detail = error_description ?? `the box answers ${response.status}`;
    if (response.status === 401 && Date.now() - this.signedIn.at > freshMs) return beginSignIn();
    if (response.status === 401 || response.status === 403) throw new Refused(detail);
    throw new Error(detail);
  }
}
