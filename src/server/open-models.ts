import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { type EngineOptions, openEngine } from "../engine/index.js";
import { describedModel } from "../engine/model-file.js";
import type { Engine } from "../engine/port.js";
import type { Models } from "../processor/models.js";
import { ConfigError, type ServerConfig } from "./config.js";
import { reasonOf } from "./file-fault.js";
import type { Log } from "./log.js";
import { modelLocation, modelNames } from "./model-location.js";

type ModelSettings = Pick<ServerConfig, "model" | "scopeModels" | "olderModels">;

/**
 * The models of a box. Models that scopes use are opened at start. A model that only older prints need is opened, with
 * its workers, when the first of these prints is a candidate.
 */
export class OpenModels implements Models {
  readonly #byRevision = new Map<string, Promise<Engine>>();
  /** Opened here and therefore closed here. */
  readonly #opened: Engine[] = [];

  private constructor(
    /** For scopes without their own model. */
    readonly engine: Engine,
    private readonly byScope: ReadonlyMap<string, Engine>,
    /** The file of each model that is not open, by revision. */
    private readonly files: ReadonlyMap<string, string | URL>,
    private readonly options: EngineOptions,
    private readonly log?: Pick<Log, "warn">,
  ) {}

  /** `given` replaces the box's own engine and is left open. */
  static async open(
    settings: ModelSettings,
    options: EngineOptions,
    given?: Engine,
    log?: Pick<Log, "warn">,
  ): Promise<OpenModels> {
    const files = await knownModels(settings);
    const engine = given ?? (await openEngine({ ...options, ...modelLocation(settings.model) }));
    const byScope = new Map<string, Engine>();
    const models = new OpenModels(engine, byScope, files.byRevision, options, log);
    if (!given) models.#opened.push(engine);
    try {
      for (const [scope, name] of Object.entries(settings.scopeModels))
        byScope.set(scope, await models.open(files.revisionOf.get(name)!));
    } catch (error) {
      await models.close();
      throw error;
    }
    return models;
  }

  of(scopeId: string): Engine {
    return this.byScope.get(scopeId) ?? this.engine;
  }

  has(revision: string): boolean {
    return revision === this.engine.model.revision || this.files.has(revision);
  }

  open(revision: string): Promise<Engine> {
    if (revision === this.engine.model.revision) return Promise.resolve(this.engine);
    const known = this.#byRevision.get(revision);
    if (known) return known;
    const opening = this.#open(revision);
    this.#byRevision.set(revision, opening);
    // A failure (no memory, a file that is being replaced) may be temporary, so the next call tries again.
    opening.catch(() => this.#byRevision.delete(revision));
    return opening;
  }

  /** Why one of the open models does not work at present. */
  get fault(): string | null {
    for (const { fault } of [this.engine, ...this.#opened]) if (fault) return fault;
    return null;
  }

  async close(): Promise<void> {
    for (const engine of this.#opened.splice(0)) await engine.close();
  }

  async #open(revision: string): Promise<Engine> {
    const model = this.files.get(revision);
    if (!model) throw new Error(`no loaded model has the revision ${revision}`);
    // The operator's calibration belongs to the box's model.
    const engine = await openEngine({ ...this.options, model, calibration: null });
    this.#opened.push(engine);
    if (this.options.calibration)
      this.log?.warn("the box's calibration is not for this model: its prints are scored with its own", {
        model: revision,
        calibration: engine.model.calibrationRevision,
      });
    return engine;
  }
}

/** All models that the settings name, and all that ship with the box: their prints are never obsolete. */
async function knownModels({ scopeModels, olderModels }: ModelSettings) {
  const byRevision = new Map<string, string | URL>();
  const revisionOf = new Map<string, string>();
  const wanted = new Set([...Object.values(scopeModels), ...olderModels]);
  for (const name of new Set([...wanted, ...modelNames])) {
    const { model } = modelLocation(name);
    const revision = await revisionAt(model!, olderModels.includes(name)).catch((error: unknown) => {
      if (wanted.has(name)) throw new ConfigError(`model ${name}: ${reasonOf(error)}`);
      return null;
    });
    if (revision === null) continue;
    byRevision.set(revision, model!);
    revisionOf.set(name, revision);
  }
  return { byRevision, revisionOf };
}

/** `isTried`: a file that this version cannot use is an error of the start, not of every call that needs it. */
async function revisionAt(location: string | URL, isTried: boolean): Promise<string> {
  const path = typeof location === "string" && !location.startsWith("file:") ? location : fileURLToPath(location);
  const bytes = await readFile(path);
  const { revision } = describedModel(bytes);
  if (isTried) await (await openEngine({ model: bytes, calibration: null, workers: 0 })).close();
  return revision;
}
