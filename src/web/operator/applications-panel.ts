/** Applications and their credentials, called the Manage view in the contract. Only for owners, like the whole view. */

import { readable } from "../../languages.js";
import type { Application, Client } from "../../token/applications.js";
import { RUNTIME_SCOPES } from "../../token/scopes.js";
import { button, element } from "../dom.js";
import type { BoxClient } from "./box-client.js";
import { ask, openDialog, type Question } from "./dialog.js";
import { keepingFocus } from "./focus.js";
import { PagedTable } from "./paged-table.js";
import { strings } from "./strings.js";
import { type Cell, day, facts, id, nameCell, Table, time } from "./table.js";

const words = strings.applications;
const [, geographyLabel, scopesLabel] = words.clientColumns;
const text = (given: FormData, name: string) => String(given.get(name) ?? "").trim();
const lines = (given: FormData, name: string) => text(given, name).split(/\s+/).filter(Boolean);
const action = (label: string, spoken: string, kind: string, click: () => void) => button(label, kind, click, spoken);

export class ApplicationsPanel {
  readonly #list = element("div", { class: "applications" });
  readonly #pages: PagedTable<Application>;
  #shown = "";

  constructor(
    readonly client: BoxClient,
    /** Called after each change, because the view's list of scopes depends on the applications. */
    readonly changed: () => void,
  ) {
    const create = action(words.create, words.create, "main", () => this.#create());
    this.#pages = new PagedTable(
      { ...words, heading: strings.parts.applications },
      client.applicationsPage,
      { element: this.#list, show: (rows, none) => this.#show(rows, none) },
      [{ name: "search", label: words.search, kind: "search" }],
      element("div", { class: "actions" }, create),
    );
    // Applications belong to no scope, so all of them are shown, whichever is chosen.
    this.#pages.scope = "all";
  }

  get element(): HTMLElement {
    return this.#pages.element;
  }

  refresh(): Promise<void> {
    return this.#pages.refresh();
  }

  #show(rows: readonly Application[], none = words.none): void {
    const now = JSON.stringify([rows, none]);
    if (now === this.#shown) return;
    this.#shown = now;
    const drawn =
      rows.length === 0 ? [element("p", { class: "note" }, none)] : rows.map((one) => this.#application(one));
    keepingFocus(this.#list, () => this.#list.replaceChildren(...drawn));
  }

  /** Asks, does what was asked, and shows the change. */
  #ask({ submit, ...question }: Question): void {
    const again = async (given: FormData) => {
      await submit(given);
      // It is done: if the list does not arrive now, it comes with the next poll.
      await this.refresh().catch(() => {});
      this.changed();
    };
    ask({ ...question, submit: again });
  }

  #askToDelete(heading: string, note: string, submit: () => Promise<void>): void {
    this.#ask({ heading, note, action: words.deleteYes, isDangerous: true, submit });
  }

  #application(application: Application): HTMLElement {
    const { id: applicationId, geographies } = application;
    const [name, environment] = [readable(application.name), readable(application.environment)];
    const clients = new Table<Client>(
      { heading: `${words.clients}: ${name}`, none: "", columns: words.clientColumns },
      (client) => this.#clientCells(application, client),
    );
    clients.show(application.clients);
    const services = Object.entries(geographies).map(
      ([geography, { scopes }]) => [`${words.services}: ${geography}`, scopes.join(" ")] as const,
    );
    return element(
      "article",
      {},
      element(
        "div",
        { class: "row article-head" },
        element("h3", {}, name, " ", element("span", { class: "part" }, environment)),
        element(
          "div",
          { class: "actions" },
          action(words.addClient, words.addClientOf(name), "quiet", () => this.#addClient(application)),
          action(words.rename, words.renameOf(name), "quiet", () => this.#rename(application)),
          action(words.delete, words.deleteOf(name), "danger", () =>
            this.#askToDelete(words.deleteHeading(name), words.deleteNote, () =>
              this.client.applications.delete(applicationId),
            ),
          ),
        ),
      ),
      facts([[words.id, id(applicationId)], [words.created, time(application.createdAt, day)], ...services]),
      clients.element,
    );
  }

  #clientCells(application: Application, client: Client): readonly Cell[] {
    const isLast = application.clients.length === 1;
    return [
      nameCell(client.name),
      nameCell(client.geography),
      nameCell(client.gkScopes.join(", ") || words.noScopes),
      client.secretCreatedAt === null ? words.noSecret : time(client.secretCreatedAt, day),
      id(client.id),
      element(
        "div",
        { class: "actions" },
        action(words.secret, words.secretOf(client.name), "quiet", () => this.#renewSecret(application, client)),
        action(words.bind, words.scopesOf(client.name), "quiet", () => this.#bind(application, client)),
        // By the contract, an application always has at least one client.
        ...(isLast
          ? []
          : [
              action(words.delete, words.deleteClientOf(client.name), "danger", () =>
                this.#askToDelete(words.deleteClientOf(client.name), words.deleteClientNote, () =>
                  this.client.applications.deleteClient(application.id, client.id),
                ),
              ),
            ]),
      ),
    ];
  }

  #create(): void {
    this.#ask({
      heading: words.create,
      fields: [
        { name: "name", label: words.name, required: true },
        { name: "environment", label: words.environment, value: "production", required: true },
        { name: "geography", label: geographyLabel, hint: words.geographyHint, value: "eu", required: true },
        { name: "services", label: words.services, kind: "checks", checks: RUNTIME_SCOPES, checked: ["bio"] },
        { name: "scopes", label: scopesLabel, hint: words.scopesHint, kind: "lines" },
      ],
      action: words.create,
      submit: async (given) => {
        const made = await this.client.applications.create({
          name: text(given, "name"),
          environment: text(given, "environment"),
          geography: text(given, "geography"),
          scopes: given.getAll("services").map(String),
          gkScopes: lines(given, "scopes"),
        });
        await this.#showFirstSecret(made.id, made.clients[0]!);
      },
    });
  }

  #rename({ id: applicationId, name, environment }: Application): void {
    this.#ask({
      heading: words.renameOf(readable(name)),
      fields: [
        { name: "name", label: words.name, value: name, required: true },
        { name: "environment", label: words.environment, value: environment, required: true },
      ],
      action: strings.save,
      submit: (given) =>
        this.client.applications.rename(applicationId, {
          name: text(given, "name"),
          environment: text(given, "environment"),
        }),
    });
  }

  #addClient({ id: applicationId, name, geographies }: Application): void {
    this.#ask({
      heading: words.addClientOf(readable(name)),
      fields: [
        { name: "name", label: words.clientName, hint: words.clientNameHint, required: true },
        { name: "geography", label: geographyLabel, value: Object.keys(geographies)[0] ?? "", required: true },
        { name: "scopes", label: scopesLabel, hint: words.scopesHint, kind: "lines" },
      ],
      action: words.addClient,
      submit: async (given) => {
        const made = await this.client.applications.createClient(applicationId, {
          name: text(given, "name"),
          geography: text(given, "geography"),
          gkScopes: lines(given, "scopes"),
        });
        await this.#showFirstSecret(applicationId, made);
      },
    });
  }

  #bind({ id: applicationId }: Application, { id: clientId, name, gkScopes }: Client): void {
    this.#ask({
      heading: words.scopesOf(name),
      fields: [
        { name: "scopes", label: scopesLabel, hint: words.scopesHint, kind: "lines", value: gkScopes.join("\n") },
      ],
      action: strings.save,
      submit: (given) => this.client.applications.bindScopes(applicationId, clientId, lines(given, "scopes")),
    });
  }

  #renewSecret({ id: applicationId }: Application, { id: clientId, name }: Client): void {
    this.#ask({
      heading: words.secretOf(name),
      note: words.secretNote,
      action: words.secretYes,
      submit: () => this.#showSecret(applicationId, clientId),
    });
  }

  /** If it fails, the client exists all the same: the form must not create it again. */
  async #showFirstSecret(applicationId: string, { id: clientId, name }: Client): Promise<void> {
    try {
      await this.#showSecret(applicationId, clientId);
    } catch (error) {
      const text = strings.failed((error as Error).message);
      openDialog(words.secretOf(name), element("p", { role: "alert" }, text)).element.classList.add("small");
    }
  }

  /** Creates a secret and shows it once. */
  async #showSecret(applicationId: string, clientId: string): Promise<void> {
    const secret = await this.client.applications.regenerateSecret(applicationId, clientId);
    openDialog(
      words.secretMade,
      element("p", { role: "status" }, words.secretOnce),
      facts([
        [words.clientId, withCopy(clientId)],
        [words.clientSecret, withCopy(secret)],
      ]),
    ).element.classList.add("small");
  }
}

/** Shows the value with a copy button; without clipboard access there is no button, and it is copied by hand. */
function withCopy(value: string): HTMLElement {
  const copy = element("button", { type: "button", class: "quiet" }, words.copy);
  const code = element("code", {}, value);
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(value);
      copy.textContent = strings.copied;
    } catch {
      // The browser refuses: the value is selected, so that a key press copies it.
      getSelection()?.selectAllChildren(code);
    }
  });
  return element("span", { class: "row copied" }, code, ...(navigator.clipboard ? [copy] : []));
}
