/**
 * A configuration set: the limits and target rates for enrollment and checks, named by `configset_id` in a request.
 * Two are built in; a user-defined one starts from either of them and overrides some values.
 */
import * as z from "zod";
import { reportInput, schemaFault } from "../contract/schema-fault.js";

const seconds = z.number().positive().max(3600);
/** The engine trains from at most 256 segments: a profile with more could never be trained again. */
const segments = z.int().min(1).max(256);
const rate = z.number().gt(0).lt(1);
const checkpoints = z
  .array(seconds)
  .max(16)
  .refine((at) => at.every((second, i) => i === 0 || second > at[i - 1]!), "must be in ascending order");

const shape = z
  .strictObject({
    printType: z.enum(["text-dependent", "text-independent"]),
    /** Net speech of one enrollment segment, seconds. */
    minNetAudioForEnroll: seconds,
    maxNetAudioForEnroll: seconds,
    minSegmentsForTrain: segments,
    maxEnrollmentSegments: segments,
    /** Net speech of all segments together, seconds. */
    minNetAudioForTrain: seconds,
    optimalNetAudioForTrain: seconds,
    minNetAudioForVerify: seconds,
    minSnrDb: z.strictObject({ enroll: z.number().min(-20).max(60), verify: z.number().min(-20).max(60) }),
    /** Saturated samples over all samples. */
    maxSaturationRatio: z.number().min(0).max(1),
    /** Active speech level, dBov. */
    minSpeechLevelDb: z.number().min(-90).max(0),
    /** Seconds of net speech after which the audio so far is judged. */
    checkpointsForAuthentication: checkpoints,
    checkpointsForFraudDetection: checkpoints,
    /** Target for a whole call, whatever the number of candidates and looks. */
    targetFalseAcceptRate: z.strictObject({ authentication: rate, fraud: rate }),
    /** Target rate of genuine callers reported as an attack, per call and kind of attack. */
    targetFalseAlarmRateForAttacks: rate,
    maxIncompatiblePrintsListed: z.int().min(0).max(100_000),
    /** How many clearly matching sessions a print may take in; 0 turns adaptation off. */
    adaptation: z.strictObject({ maxSessions: z.int().min(0).max(16) }),
  })
  .superRefine((set, context) => {
    const ordered = (low: keyof typeof set, high: keyof typeof set) => {
      if (set[low] > set[high]) context.addIssue({ code: "custom", path: [low], message: `must not be above ${high}` });
    };
    ordered("minNetAudioForEnroll", "maxNetAudioForEnroll");
    ordered("minSegmentsForTrain", "maxEnrollmentSegments");
    ordered("minNetAudioForTrain", "optimalNetAudioForTrain");
    if (set.minNetAudioForTrain > set.maxNetAudioForEnroll * set.maxEnrollmentSegments)
      context.addIssue({
        code: "custom",
        path: ["minNetAudioForTrain"],
        message: "must not be above maxNetAudioForEnroll × maxEnrollmentSegments, the most that a profile can contain",
      });
  });

type Writable = z.infer<typeof shape>;
/** A complete set of limits and rates. */
export type ConfigurationSet = { readonly [key in keyof Writable]: Readonly<Writable[key]> };

/** Overrides of a built-in set, as a user writes them. */
export type ConfigurationOverrides = {
  readonly [key in keyof ConfigurationSet]?: ConfigurationSet[key] extends number | string | readonly number[]
    ? ConfigurationSet[key]
    : Partial<ConfigurationSet[key]>;
} & { readonly basedOn?: string };

/** Options or a configuration set are invalid; the message says what is wrong. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
}

const ivrTextDependent: ConfigurationSet = {
  printType: "text-dependent",
  minNetAudioForEnroll: 1,
  maxNetAudioForEnroll: 10,
  minSegmentsForTrain: 3,
  maxEnrollmentSegments: 50,
  minNetAudioForTrain: 3,
  optimalNetAudioForTrain: 8,
  minNetAudioForVerify: 1,
  minSnrDb: { enroll: 8, verify: 3 },
  maxSaturationRatio: 0.01,
  minSpeechLevelDb: -45,
  checkpointsForAuthentication: [2, 5],
  checkpointsForFraudDetection: [5, 10],
  targetFalseAcceptRate: { authentication: 0.01, fraud: 0.01 },
  targetFalseAlarmRateForAttacks: 0.01,
  maxIncompatiblePrintsListed: 100,
  adaptation: { maxSessions: 0 },
};

const textIndependent: ConfigurationSet = {
  ...ivrTextDependent,
  printType: "text-independent",
  minNetAudioForEnroll: 4,
  maxNetAudioForEnroll: 120,
  minSegmentsForTrain: 1,
  minNetAudioForTrain: 15,
  optimalNetAudioForTrain: 30,
  minNetAudioForVerify: 3,
  checkpointsForAuthentication: [5, 10],
  checkpointsForFraudDetection: [10, 30],
};

export const defaultConfigurationSetId = "ivr-text-dependent";

/** The two built-in sets, by id. */
export const builtInConfigurationSets: Readonly<Record<string, ConfigurationSet>> = {
  [defaultConfigurationSetId]: ivrTextDependent,
  "text-independent": textIndependent,
};

/** The built-in sets and the user's. Throws one `ConfigurationError` that lists every problem. */
export function configurationSets(
  userDefined: Readonly<Record<string, ConfigurationOverrides>> = {},
): ReadonlyMap<string, ConfigurationSet> {
  const sets = new Map(Object.entries(builtInConfigurationSets));
  for (const [id, overrides] of Object.entries(userDefined)) sets.set(id, configurationSet(id, overrides));
  return sets;
}

/** A user-defined set: a built-in one with overrides. Throws `ConfigurationError`. */
export function configurationSet(id: string, overrides: ConfigurationOverrides): ConfigurationSet {
  const refuse = (reason: string) => new ConfigurationError(`configuration set "${id}": ${reason}`);
  if (id === "") throw refuse("its id must not be empty");
  if (typeof overrides !== "object" || overrides === null) throw refuse("expected an object");
  const { basedOn = Object.hasOwn(builtInConfigurationSets, id) ? id : defaultConfigurationSetId, ...changes } =
    overrides;
  const base = Object.hasOwn(builtInConfigurationSets, basedOn) ? builtInConfigurationSets[basedOn] : undefined;
  if (!base) throw refuse(`basedOn: there is no built-in set "${basedOn}"`);
  const merged = {
    ...base,
    ...changes,
    minSnrDb: nested(base.minSnrDb, changes.minSnrDb),
    targetFalseAcceptRate: nested(base.targetFalseAcceptRate, changes.targetFalseAcceptRate),
    adaptation: nested(base.adaptation, changes.adaptation),
  };
  const parsed = shape.safeParse(merged, reportInput);
  if (parsed.success) return parsed.data;
  throw refuse(
    parsed.error.issues
      .map((issue) => [issue.path.join("."), schemaFault(issue)].filter((part) => part !== "").join(": "))
      .join("; "),
  );
}

/** A value that is not an object is passed on unchanged, for the schema to reject. */
const nested = (base: object, change: unknown) =>
  change === undefined ? base : typeof change === "object" && change !== null ? { ...base, ...change } : change;
