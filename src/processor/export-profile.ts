/** Everything stored about one profile, for its owner or for another box or device, as plain JSON values. */
import { StatusCode, statusError, VoiceprintProfileStatus } from "../contract/index.js";
import type { Template, VoiceWindow } from "../engine/port.js";
import type { Id, OwnerKind, ProcessedAudio, RecordedConsent } from "../store/port.js";
import { checkOptionalContext } from "./context.js";
import type { Dependencies, Implementation } from "./dependencies.js";
import { notInScope } from "./failures.js";

/** The format of exports. An import must have the same format and version. */
export const exportFormat = { format: "vivavoce-voiceprint", version: 1 } as const;

/** Everything stored about one print. */
export interface ExportedProfile {
  readonly format: typeof exportFormat.format;
  readonly version: typeof exportFormat.version;
  readonly profileId: Id;
  readonly owner: { readonly kind: OwnerKind; readonly externalId: string };
  readonly tag: string;
  readonly printType: string | null;
  readonly printVersion: number;
  readonly status: keyof typeof VoiceprintProfileStatus;
  readonly createdAt: string;
  /** Absent if not recorded. */
  readonly consent?: Omit<RecordedConsent, "at"> & { readonly at: string };
  readonly template: ExportedTemplate | null;
  readonly segments: readonly ExportedSegment[];
}

/** One enrolled recording of an exported profile; it contains no audio. */
export interface ExportedSegment
  extends Omit<ProcessedAudio, "id" | "scopeId" | "partOf" | "partOfChannel" | "createdAt" | "voice"> {
  readonly processedAudioId: Id;
  readonly createdAt: string;
  readonly addedAt: string;
  readonly embedding: number[] | null;
  readonly windows: readonly Exported<VoiceWindow>[];
}

type Grown = NonNullable<Template["grown"]>;

/** The template of an exported profile. */
export interface ExportedTemplate extends Exported<Omit<Template, "grown">> {
  readonly grown?: {
    readonly enrolled: Exported<Grown["enrolled"]>;
    readonly sessions: readonly Exported<Grown["sessions"][number]>[];
  };
}

/** T with its embedding in a form that JSON can hold. */
export type Exported<T extends { readonly embedding: Float32Array }> = Omit<T, "embedding"> & {
  readonly embedding: number[];
};

/** Nine significant digits identify every 32-bit float uniquely. */
const decimals = (embedding: Float32Array): number[] => Array.from(embedding, (value) => Number(value.toPrecision(9)));

const exported = <T extends { readonly embedding: Float32Array }>(one: T): Exported<T> => ({
  ...one,
  embedding: decimals(one.embedding),
});

const exportedTemplate = ({ grown, ...template }: Template): ExportedTemplate => ({
  ...exported(template),
  ...(grown && { grown: { enrolled: exported(grown.enrolled), sessions: grown.sessions.map(exported) } }),
});

export async function exportProfile(deps: Dependencies, scopeId: Id, profileId: Id): Promise<ExportedProfile | null> {
  const profile = await deps.store.profiles.get(scopeId, profileId);
  if (!profile) return null;
  const segments = await deps.store.profiles.segments(scopeId, profileId);
  const { template, owner, consent } = profile;
  return {
    ...exportFormat,
    profileId,
    owner: { kind: owner.kind, externalId: owner.externalId },
    tag: profile.tag,
    printType: profile.printType,
    printVersion: profile.printVersion,
    status: VoiceprintProfileStatus[profile.status] as keyof typeof VoiceprintProfileStatus,
    createdAt: new Date(profile.createdAt).toISOString(),
    ...(consent && { consent: { ...consent, at: new Date(consent.at).toISOString() } }),
    template: template && exportedTemplate(template),
    segments: segments.map(({ processed, addedAt }) => {
      const { id, scopeId: _, partOf: __, partOfChannel: ___, createdAt, voice, ...kept } = processed;
      return {
        processedAudioId: id,
        ...kept,
        createdAt: new Date(createdAt).toISOString(),
        addedAt: new Date(addedAt).toISOString(),
        embedding: voice.embedding && decimals(voice.embedding),
        windows: voice.windows.map(exported),
      };
    }),
  };
}

export const exportVoiceprintProfile: Implementation<"exportVoiceprintProfile"> = async (deps, request) => {
  const scopeId = await checkOptionalContext(deps, request.context);
  if (!deps.allowExport)
    throw statusError(
      StatusCode.PERMISSION_DENIED,
      'this server does not export voiceprints; set "allowExport" to true in its configuration',
    );
  const profile = await exportProfile(deps, scopeId, request.gkVoiceprintProfileId!.value);
  if (!profile) throw notInScope("gk_voiceprint_profile_id", "profile", request.gkVoiceprintProfileId!.value);
  return { profile: new TextEncoder().encode(JSON.stringify(profile)) };
};
