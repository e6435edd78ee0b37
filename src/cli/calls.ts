import { readFile } from "node:fs/promises";
import { AudioError } from "../audio/index.js";
import { AudioValidity } from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import { fileFault } from "../server/file-fault.js";
import { findProfile, type Owner, type Recording } from "../workflow.js";
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
    `enroll first: vivavoce enroll ${kind === "fraudster" ? "--fraudster " : ""}${tag ? `--tag ${quoted(tag)} ` : ""}${quoted(name)} a.wav b.wav c.wav`,
  );
}

/** As a shell reads it. */
const quoted = (word: string): string => (/^[\w.@+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** Adds the name of the file, if the error is about the file. */
export function faultOf(path: string, error: unknown): unknown {
  if (fileFault(error)) return faultOfFile(path, error);
  if (error instanceof AudioError) return new AudioError(error.code, `${path}: ${error.message}`);
  return error;
}

/** A file as it is uploaded. */
export async function recordingOf(path: string, format: RawOptions | undefined): Promise<Recording> {
  try {
    return { chunk: await readFile(path), name: path, ...format };
  } catch (error) {
    throw faultOf(path, error);
  }
}

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
