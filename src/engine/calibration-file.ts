/**
 * An operator's own calibration, as `vivavoce calibrate` writes it: JSON that replaces the model's section `calibration`.
 * The SHA-256 of its bytes is its revision. It belongs to one network; changing it makes no template obsolete.
 */
import { type AttackModel, findsAttacks, type GenuineRatios, isGenuineRatios } from "./attack-network.js";
import { type Calibration, calibrationOf } from "./calibration.js";
import { EngineError } from "./engine-error.js";
import { sha256 } from "./model-file.js";
import type { AttackKind } from "./port.js";

export const CALIBRATION_FORMAT = "vivavoce-calibration";
export const CALIBRATION_VERSION = 1;

export interface CalibrationFile {
  readonly format: typeof CALIBRATION_FORMAT;
  readonly version: typeof CALIBRATION_VERSION;
  /** SHA-256 (hex) of the network that it was fitted to. */
  readonly modelRevision: string;
  /** The data that it was fitted on. */
  readonly speakers: number;
  readonly sameTrials: number;
  readonly differentTrials: number;
  readonly calibration: Readonly<Record<string, unknown>>;
  /** Upper tail of genuine calls in the attack checks, if those were fitted; replaces the model's own. */
  readonly attacks?: OwnAttacks;
}

export type OwnAttacks = { readonly [kind in AttackKind]?: GenuineRatios & { readonly revision: string } };

export interface OwnCalibration {
  readonly calibration: Calibration;
  readonly attacks: OwnAttacks;
  readonly revision: string;
}

/** The calibration and its revision. Refuses an invalid file, and one fitted to another network. */
export async function readCalibrationFile(bytes: Uint8Array, modelRevision: string): Promise<OwnCalibration> {
  let file: Partial<CalibrationFile> | null;
  try {
    file = JSON.parse(new TextDecoder().decode(bytes)) as Partial<CalibrationFile> | null;
  } catch {
    throw refused("it is not JSON");
  }
  if (typeof file !== "object" || file?.format !== CALIBRATION_FORMAT)
    throw refused('it was not made by "vivavoce calibrate"');
  if (file.version !== CALIBRATION_VERSION)
    throw refused(`it has version ${String(file.version)}; this engine reads version ${CALIBRATION_VERSION}`);
  if (file.modelRevision !== modelRevision)
    throw refused('it was fitted to another model; run "vivavoce calibrate" again with this one');
  if (typeof file.calibration !== "object" || file.calibration === null) throw refused("it has no calibration");
  return {
    calibration: ownCalibration(file.calibration),
    attacks: ownAttacks(file.attacks),
    revision: await sha256(bytes),
  };
}

/** The file is at fault, not the model. */
function ownCalibration(section: Readonly<Record<string, unknown>>): Calibration {
  try {
    return calibrationOf(section);
  } catch (error) {
    throw new EngineError("BAD_CALIBRATION", (error as EngineError).message);
  }
}

function ownAttacks(attacks: unknown = {}): OwnAttacks {
  const fits = Object.values((attacks ?? {}) as OwnAttacks);
  const isObject = typeof attacks === "object" && attacks !== null;
  if (!isObject || !fits.every((fit) => typeof fit?.revision === "string" && isGenuineRatios(fit)))
    throw refused("its attack thresholds are malformed");
  const blind = Object.entries(attacks as OwnAttacks).find(([, fit]) => !findsAttacks(fit));
  if (blind)
    throw refused(
      `its thresholds for ${blind[0]} speech are too high for any attack; use "vivavoce calibrate --no-attacks"`,
    );
  return attacks as OwnAttacks;
}

/** The attack networks with the operator's own calibration; refused if it was fitted to other networks. */
export function attacksUnder(own: OwnAttacks, models: readonly AttackModel[]): AttackModel[] {
  return models.map((model) => {
    const fit = own[model.kind];
    if (!fit) return model;
    if (fit.revision !== model.revision)
      throw refused(`it was fitted to another network for ${model.kind} speech; run "vivavoce calibrate" again`);
    return { ...model, genuine: { location: fit.location, scale: fit.scale } };
  });
}

const refused = (why: string) => new EngineError("BAD_CALIBRATION", `the calibration file cannot be used: ${why}`);
