import { readFile } from "node:fs/promises";
import { AudioError } from "../audio/index.js";
import { AudioValidity } from "../contract/index.js";
import { isUuid } from "../contract/mandatory.js";
import type { Operations } from "../contract/operations.js";
import { fileFault } from "../server/file-fault.js";
import { findProfile, type Owner, profilesIn, type Recording } from "../workflow.js";
import { CommandError, faultOfFile } from "./command-error.js";
import type { RawOptions } from "./shared-options.js";

export const person = (name: string, tag = ""): Owner => ({ kind: "person", name, tag });
export const fraudster = (name: string, tag = ""): Owner => ({ kind: "fraudster", name, tag });

/** The profile of a person or fraudster who must have one. */
export async function profileOf(operations: Operations, scope: string, owner: Owner): Promise<string> {
  const id = await findProfile(operations, scope, owner);
  if (id !== null) return id;
  const { kind, name, tag } = owner;
  throw new CommandError(
    `no ${kind} "${name}"${tag ? ` with tag "${tag}"` : ""} is enrolled here`,
    `enroll first: ${enrollCall(owner, "a.wav b.wav c.wav")}`,
  );
}

/** The command that enrolls this person or fraudster. */
export const enrollCall = ({ kind, name, tag }: Owner, files: string): string =>
  `vivavoce enroll ${kind === "fraudster" ? "--fraudster " : ""}${tag ? `--tag ${quoted(tag)} ` : ""}${quoted(name)} ${files}`;

/** The names of people or fraudsters by the ids of their voiceprints. */
export async function namesIn(
  operations: Operations,
  scope: string,
  ...kinds: readonly Owner["kind"][]
): Promise<ReadonlyMap<string, string>> {
  const profiles = await Promise.all(kinds.map((kind) => profilesIn(operations, scope, kind)));
  return new Map(profiles.flat().map(({ id, name }) => [id, name]));
}

interface Listed {
  readonly id: string;
  readonly tag: string;
  readonly profiles: number;
  readonly owners: number;
}

/** All watchlists or groups of a scope. */
export async function listsIn(operations: Operations, scope: string, kind: "watchlist" | "group"): Promise<Listed[]> {
  const list = kind === "watchlist" ? "listWatchlists" : "listGroups";
  const lists: Listed[] = [];
  let pageToken = "";
  do {
    const page = await operations[list]({ context: { gkScopeId: { value: scope } }, pageToken });
    for (const { gkGroupId, tag, numberOfProfiles, numberOfOwners } of page.groups)
      lists.push({ id: gkGroupId!.value, tag, profiles: numberOfProfiles, owners: numberOfOwners });
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return lists;
}

/** The id of a watchlist or group that is given by its name (its tag) or by its id. */
export async function listOf(
  operations: Operations,
  scope: string,
  kind: "watchlist" | "group",
  given: string,
): Promise<string> {
  if (isUuid(given)) return given;
  const [found, ...more] = (await listsIn(operations, scope, kind)).filter(({ tag }) => tag === given);
  if (!found || given === "") throw new CommandError(`there is no ${kind} "${given}" in the scope "${scope}"`);
  if (more.length > 0)
    throw new CommandError(
      `${1 + more.length} ${kind}s are called "${given}"`,
      `give the id of one: ${[found, ...more].map(({ id }) => id).join(", ")}`,
    );
  return found.id;
}

/** As a shell reads it. */
const quoted = (word: string): string => (/^[\w.@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Adds the name of the file, if the error is about the file. */
export function faultOf(path: string, error: unknown): unknown {
  if (fileFault(error)) return faultOfFile(path, error);
  if (error instanceof AudioError) return new AudioError(error.code, `${path}: ${error.message}`);
  return error;
}

export const bytesOf = (path: string): Promise<Buffer> =>
  readFile(path).catch((error: unknown) => Promise.reject(faultOf(path, error)));

/** A file as it is uploaded. */
export const recordingOf = async (path: string, format: RawOptions | undefined): Promise<Recording> => ({
  chunk: await bytesOf(path),
  name: path,
  ...format,
});

const remedies: Partial<Record<AudioValidity, string>> = {
  [AudioValidity.AUDIO_TOO_SHORT]: "speak longer",
  [AudioValidity.AUDIO_TOO_SOFT]: "speak up, or move closer to the microphone",
  [AudioValidity.AUDIO_TOO_LOUD]: "the audio is clipped, so lower the recording level",
  [AudioValidity.AUDIO_TOO_NOISY]: "find a quieter place",
  [AudioValidity.MULTIPLE_SPEAKERS_DETECTED]: "record one person at a time",
  [AudioValidity.INVALID_AUDIO]: "record it again, as WAV",
};

/** What a person can do about audio that is not good enough. */
export const remedy = (validity: AudioValidity): string | null => remedies[validity] ?? null;
