import type { AttackKind } from "../engine/port.js";
import { element } from "./dom.js";
import { decimal, strings } from "./strings.js";

/** The result of one attack check on one recording. */
export interface AttackFinding {
  readonly kind: AttackKind;
  readonly found: "attack" | "none" | "unsure";
  /** The stretch that sounds most like an attack; `null` if no speech was heard. */
  readonly strongest: { readonly startSeconds: number; readonly endSeconds: number } | null;
}

export const isAttacked = (findings: readonly AttackFinding[]): boolean =>
  findings.some(({ found }) => found === "attack");

/** Lists, for each attack check, whether the voice sounds alive. */
export class AttackList {
  readonly #list = element("dl");
  readonly element = element(
    "section",
    { class: "attacks", "aria-label": strings.attacks.heading },
    element("h3", {}, strings.attacks.heading),
    this.#list,
  );

  constructor() {
    this.clear();
  }

  show(findings: readonly AttackFinding[]): void {
    this.element.hidden = findings.length === 0;
    this.#list.replaceChildren(
      ...findings.map(({ kind, found, strongest }) => {
        const text = strings.attacks.found[found];
        // Without a sign of an attack, a position would be confusing.
        const where =
          strongest && found !== "none"
            ? strings.attacks.where(decimal(strongest.startSeconds), decimal(strongest.endSeconds))
            : "";
        return element(
          "div",
          { "data-found": found },
          element("dt", {}, strings.attacks.kinds[kind]),
          element("dd", {}, where === "" ? text : `${text} (${where})`),
        );
      }),
    );
  }

  clear(): void {
    this.show([]);
  }
}
