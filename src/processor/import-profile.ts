/** Creates a profile from an export of another box or device. Everything is validated before anything is written. */
import * as z from "zod";
import { AudioValidity, StatusCode, type StatusError, VoiceprintProfileStatus } from "../contract/index.js";
import { reportInput, schemaFault } from "../contract/schema-fault.js";
import type { ModelInfo } from "../engine/port.js";
import type { EnrollmentSegment, Id, Profile, RecordedConsent } from "../store/port.js";
import { checkOptionalContext } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import { exportFormat } from "./export-profile.js";
import { invalid, refusal } from "./failures.js";
import { uniqueId } from "./messages.js";
import { assertConsent, assertName, createProfile } from "./profiles.js";

export const importVoiceprintProfile: Implementation<"importVoiceprintProfile"> = async (deps, request) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  const given = await parse(request.profile, deps.models.of(scopeId).model);
  const { kind } = given.owner;
  const externalId = assertName(request.ownerId || given.owner.externalId, "owner_id");
  const tag = assertName(given.tag, "profile_tag");
  const before = await deps.store.profiles.find(scopeId, kind, externalId, tag);
  // What was recorded here is the operator's own record.
  const consent = before?.consent ?? consentOf(given);
  await eraseEmpty(deps, scopeId, before);
  const profile = await createProfile(deps, scopeId, { kind, externalId }, tag, given.printType);
  if (!profile) throw exists(kind, externalId, tag);
  const trained = {
    template: given.template,
    status: VoiceprintProfileStatus[given.status],
    printVersion: given.printVersion,
    segments: given.segments.map((segment) => segmentOf(deps, profile, segment)),
  };
  const written = await writeTemplate(deps, profile, consent, trained).catch(async (error: unknown) => {
    await deps.store.profiles.erase(scopeId, profile.id);
    throw error;
  });
  // Another writer enrolled or erased between the two writes.
  if (!written) throw exists(kind, externalId, tag);
  return { gkVoiceprintProfileId: uniqueId(profile.id), gkOwnerId: uniqueId(profile.owner.id) };
};

/** Consent comes first, so that a print whose consent is withdrawn is never used. */
async function writeTemplate(
  { store: { profiles } }: Dependencies,
  { scopeId, id, generation }: Profile,
  consent: RecordedConsent | undefined,
  trained: Parameters<typeof profiles.train>[3],
): Promise<boolean> {
  if (!consent) return profiles.train(scopeId, id, generation, trained);
  await profiles.setConsent(scopeId, id, consent);
  const recorded = await profiles.get(scopeId, id);
  return recorded !== null && profiles.train(scopeId, id, recorded.generation, trained);
}

/** Profiles of fraudsters have none. */
function consentOf({ owner, consent }: ImportedProfile): RecordedConsent | undefined {
  if (!consent || owner.kind !== "person") return undefined;
  return { ...consent, at: Date.parse(consent.at), reference: assertName(consent.reference, "consent.reference") };
}

/**
 * Erases a profile without segments, such as one left by an interrupted import; any other profile stays. A withdrawal of
 * consent must not be erased with it.
 */
async function eraseEmpty(deps: Dependencies, scopeId: Id, profile: Profile | null): Promise<void> {
  if (!profile || profile.template) return;
  assertConsent(profile, "owner_id");
  if ((await deps.store.profiles.segments(scopeId, profile.id)).length === 0)
    await deps.store.profiles.erase(scopeId, profile.id);
}

function exists(kind: string, name: string, tag: string): StatusError {
  const which = tag === "" ? "a voiceprint" : `a voiceprint with the tag "${tag}"`;
  const message = `the ${kind} "${name}" already has ${which} here; erase it first, or import it under another name`;
  return refusal(StatusCode.ALREADY_EXISTS, "owner_id", "exists", message);
}

/** Creates new ids: an id of the other store may belong to somebody else here. */
function segmentOf(deps: Dependencies, profile: Profile, segment: ImportedSegment): EnrollmentSegment {
  const { processedAudioId: _, embedding, windows, createdAt, addedAt, ...kept } = segment;
  return {
    profileId: profile.id,
    addedAt: Date.parse(addedAt),
    processed: {
      ...kept,
      id: deps.ids.next(),
      scopeId: profile.scopeId,
      sessionId: deps.ids.next(),
      mediaSegmentId: deps.ids.next(),
      createdAt: Date.parse(createdAt),
      voice: { embedding, windows },
    },
  };
}

/** More than any export has, and little enough for every field of an answer: a larger number could be stored, but not sent. */
const most = 1e9;
const amount = z.number().min(0).max(most);
const count = z.number().int().min(0).max(most);
/** At most four months, more than a person enrolls with. */
const seconds = z.number().min(0).max(1e7);
/** The engine counts speech in frames of 10 ms. With less than one, its means would be divisions by almost nothing. */
const leastSpeechSeconds = 0.01;
const speech = seconds.min(leastSpeechSeconds);
/** Far above every sampling rate. */
const hertz = z.number().min(0).max(1e6);
const decibels = z.number().min(-1000).max(1000).nullable();
/** In milliseconds, as far as a `Date` goes. */
const time = z.number().min(0).max(8.64e15);
const instant = z.iso.datetime();

/** How far the length of a unit vector may be off after conversion to decimals and back. */
const unitTolerance = 1e-3;

/** How many elements are checked before other callers get their turn: a few milliseconds. */
const elementsAtOnce = 50;

/**
 * Stops at the first fault, the only one that is reported. zod collects all: those of a few megabytes of wrong values would stop the
 * process for a minute, or take all its memory.
 */
const listOf = <Element extends z.ZodType>(element: Element) =>
  z.array(z.unknown()).transform(async (values, context) => {
    const checked: z.output<Element>[] = [];
    for (const [i, value] of values.entries()) {
      if (i % elementsAtOnce === elementsAtOnce - 1) await new Promise((resume) => setTimeout(resume, 0));
      const { data, error } = await element.safeParseAsync(value, reportInput);
      if (error) {
        const { path, ...fault } = error.issues[0]!;
        context.issues.push({ ...fault, path: [i, ...path] } as z.core.$ZodRawIssue);
        return z.NEVER;
      }
      checked.push(data);
    }
    return checked;
  });

/** More numbers than the embedding of any model has. */
const mostDimensions = 512;

function profileSchema({ dimensions, revision }: ModelInfo) {
  const embeddingOf = (values: z.ZodArray<z.ZodUnknown>) =>
    values
      .pipe(z.array(z.number()))
      .transform((values) => Float32Array.from(values))
      .refine((values) => Math.abs(Math.hypot(...values) - 1) < unitTolerance, "an embedding must have unit length");
  const embedding = embeddingOf(z.array(z.unknown()).length(dimensions));
  // Earlier segments may be of a model with embeddings of another length.
  const ofAnyModel = embeddingOf(z.array(z.unknown()).max(mostDimensions));
  const voice = z.strictObject({
    embedding,
    // The engine refuses to score a print without speech, and with it every other print of the same list.
    netSpeechSeconds: speech,
    snrDb: decibels,
    bandwidthHz: hertz.nullable(),
  });
  const measures = z.strictObject({
    rateHz: hertz.int(),
    grossSeconds: seconds,
    netSpeechSeconds: seconds,
    speechLevelDb: decibels,
    snrDb: decibels,
    saturatedPerMinute: amount,
    saturationRatio: amount,
    bandwidthHz: hertz.nullable(),
  });
  const segment = z
    .strictObject({
      processedAudioId: z.string(),
      sessionId: z.string(),
      mediaSegmentId: z.string(),
      channel: count.nullable(),
      mediaChannels: count.min(1),
      mediaRateHz: hertz.int(),
      printType: z.string(),
      source: z.enum(["process-audio", "check"]),
      validity: z.enum(AudioValidity),
      measures,
      speakers: count,
      voiceClass: amount.max(100).nullable(),
      revision: z.string(),
      createdAt: instant,
      addedAt: instant,
      embedding: ofAnyModel.nullable(),
      windows: listOf(
        z.strictObject({ embedding: ofAnyModel, speechSeconds: speech, startSeconds: seconds, endSeconds: seconds }),
      ),
    })
    .refine(({ embedding, measures }) => embedding === null || measures.netSpeechSeconds >= leastSpeechSeconds, {
      path: ["measures", "netSpeechSeconds"],
      error: `must be at least ${leastSpeechSeconds} with an embedding`,
    })
    .refine(
      (segment) =>
        segment.revision !== revision ||
        [segment, ...segment.windows].every(({ embedding }) => embedding === null || embedding.length === dimensions),
      { path: ["embedding"], error: `must have exactly ${dimensions} values, in windows too` },
    );
  return z.strictObject({
    format: z.literal(exportFormat.format),
    version: z.literal(exportFormat.version),
    profileId: z.string(),
    owner: z.strictObject({ kind: z.enum(["person", "fraudster"]), externalId: z.string().min(1) }),
    tag: z.string(),
    printType: z.string().nullable(),
    printVersion: count.min(1),
    status: z.enum(["BASIC_TRAINED", "OPTIMAL_TRAINED"]),
    createdAt: instant,
    consent: z.strictObject({ state: z.enum(["given", "withdrawn"]), at: instant, reference: z.string() }).optional(),
    template: voice.extend({
      revision: z.string(),
      calibrationModelId: z.string().optional(),
      grown: z
        .strictObject({
          enrolled: voice,
          sessions: listOf(voice.extend({ sessionId: z.string(), at: time })),
        })
        .optional(),
    }),
    segments: listOf(segment),
  });
}

type ImportedProfile = z.output<ReturnType<typeof profileSchema>>;
type ImportedSegment = ImportedProfile["segments"][number];

async function parse(
  bytes: Uint8Array,
  model: ModelInfo,
): Promise<ImportedProfile & { readonly template: Profile["template"] & {} }> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw invalid("profile", "malformed", "profile is not an exported voiceprint: it is not JSON");
  }
  checkOrigin(value, model);
  const parsed = await profileSchema(model).safeParseAsync(value, reportInput);
  if (parsed.success) return parsed.data as Awaited<ReturnType<typeof parse>>;
  const issue = parsed.error.issues[0]!;
  const at = issue.path.join(".") || "the export";
  throw invalid("profile", "malformed", `profile is not an exported voiceprint: ${at}: ${schemaFault(issue)}`);
}

/** The error for a valid export of another version or another model. */
function checkOrigin(value: unknown, model: ModelInfo): void {
  const { format, version, template } = (value ?? {}) as {
    format?: unknown;
    version?: unknown;
    template?: { revision?: unknown; calibrationModelId?: unknown } | null;
  };
  if (format !== exportFormat.format) throw invalid("profile", "malformed", "profile is not an exported voiceprint");
  if (version !== exportFormat.version)
    throw invalid("profile", "version", `expected an export of version ${exportFormat.version}, got ${version}`);
  if (template === null)
    throw invalid("profile", "not_trained", "the exported voiceprint is not trained; finish its enrollment first");
  if (typeof template?.revision !== "string" || template.revision === model.revision) return;
  const maker = typeof template.calibrationModelId === "string" ? `${template.calibrationModelId}, ` : "";
  const message =
    `the voiceprint was made by another model (${maker}revision ${template.revision.slice(0, 16)}); ` +
    `the model here is ${model.calibrationModelId}, revision ${model.revision.slice(0, 16)}: enroll again`;
  throw refusal(StatusCode.OBSOLETE, "profile", "obsolete", message);
}
