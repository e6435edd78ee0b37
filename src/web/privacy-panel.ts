import { element } from "./dom.js";
import { NetworkLock } from "./network-lock.js";
import { strings } from "./strings.js";

/** Says that nothing leaves the device, and shows the proof. */
export class PrivacyPanel {
  readonly lock = new NetworkLock(() => this.#show());
  readonly #locked = element("li");
  readonly #requests = element("li");
  readonly #network = element("li");
  readonly element = element(
    "aside",
    { class: "privacy", id: "privacy", "aria-labelledby": "privacy-heading" },
    element("h2", { id: "privacy-heading" }, strings.privacy.heading),
    element("p", {}, strings.privacy.what),
    element("p", {}, strings.privacy.where),
    element("p", {}, strings.privacy.proof),
    element("ul", {}, this.#locked, this.#requests, this.#network),
  );

  #worksOffline = false;

  constructor() {
    this.#show();
  }

  /** Everything that the next visit needs is kept in this browser. */
  worksOffline(): void {
    this.#worksOffline = true;
    this.#show();
  }

  #show(): void {
    const { locked, unlocked, requests, online, offline } = strings.privacy;
    this.#locked.textContent = this.lock.locked ? locked : unlocked;
    this.#requests.textContent = requests(this.lock.requests);
    this.#requests.hidden = !this.lock.locked;
    this.#network.textContent = navigator.onLine ? online : offline;
    this.#network.hidden = !this.#worksOffline;
  }
}
