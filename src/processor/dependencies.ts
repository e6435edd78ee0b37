/** The ports and policies that operations work with, passed in by the code that composes them. */

import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { RawFormat, Recording, ToWav } from "../audio/port.js";
import type { Methods, OperationOptions } from "../contract/operations.js";
import { optionsFault } from "../contract/options-fault.js";
import type { CallOptions } from "../engine/port.js";
import type { GroupKind, Store } from "../store/port.js";
import { ConfigurationError, type ConfigurationSet } from "../voiceprint/configuration-set.js";
import type { FieldRates } from "./field-rates.js";
import type { Galleries } from "./galleries.js";
import type { GroupCache } from "./group-cache.js";
import type { Models } from "./models.js";
import type { PrintCache } from "./print-cache.js";

export type { OperationOptions } from "../contract/operations.js";

/** The clock is passed in so that tests can control it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
}

/** Where new ids come from. */
export interface Ids {
  next(): string;
}

/** How long things are kept. */
export interface Retention {
  /** Audio is kept this long after its session stops; 0 by default: it goes with the session. */
  readonly audioSeconds: number;
  /** How long audio models that no profile was enrolled from are kept after their session stops; 30 days by default. */
  readonly audioModelSeconds: number;
  /** A session that nobody stopped counts as stopped this long after its start; a day by default. */
  readonly abandonedSessionSeconds: number;
  /** How long a job that has ended can be read, counted from its start; a week by default. */
  readonly jobSeconds: number;
}

export const defaultRetention: Retention = {
  audioSeconds: 0,
  audioModelSeconds: 30 * 86_400,
  abandonedSessionSeconds: 86_400,
  jobSeconds: 7 * 86_400,
};

/** Limits on calls. */
export interface Limits {
  /** Bytes of one media segment; 256 MiB by default. */
  readonly mediaBytes: number;
  /** Characters of `custom_data`; 65,536 by default. */
  readonly customData: number;
  /** Jobs of one scope that have not ended; 100 by default. */
  readonly jobsPerScope: number;
  /** Bytes of the jobs of one scope that have ended; 256 MiB by default. Beyond it, the oldest are deleted when another job begins. */
  readonly jobBytesPerScope: number;
}

export const defaultLimits: Limits = {
  mediaBytes: 256 * 1024 * 1024,
  customData: 65_536,
  jobsPerScope: 100,
  jobBytesPerScope: 256 * 1024 * 1024,
};

/**
 * The defaults, overridden by the given values. Throws unless each is a number of at least 0: with any other value,
 * expiry could delete the audio of sessions that are still running.
 */
export function withDefaults<T extends object>(name: string, defaults: T, given: Partial<T> = {}): T {
  const fault = optionsFault(given, defaults, name);
  if (fault !== null) throw new ConfigurationError(fault);
  const all = { ...defaults };
  for (const key of Object.keys(defaults) as (keyof T & string)[]) {
    const amount: unknown = given[key] ?? defaults[key];
    if (typeof amount !== "number" || !(amount >= 0))
      throw new ConfigurationError(`${name}.${key} must be a number of at least 0, got ${String(amount)}`);
    all[key] = amount as T[typeof key];
  }
  return all;
}

export interface Dependencies {
  readonly models: Models;
  readonly store: Store;
  readonly readRecording: (bytes: Uint8Array, format?: RawFormat) => Recording;
  readonly toWav: ToWav;
  readonly configurationSets: ReadonlyMap<string, ConfigurationSet>;
  readonly galleries: Galleries;
  readonly prints: PrintCache;
  readonly groups: GroupCache;
  readonly fieldRates: FieldRates;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly retention: Retention;
  readonly limits: Limits;
  /** Whether ExportVoiceprintProfile is allowed. */
  readonly allowExport: boolean;
}

type RequestOf<Name extends keyof Methods> = MessageShape<Methods[Name]["input"]>;
/** Without the status, which is added to every answer. */
type AnswerOf<Name extends keyof Methods> = Promise<MessageInitShape<Methods[Name]["output"]>>;

/** An operation of the contract, given a request that has its mandatory fields. */
export type Implementation<Name extends keyof Methods> = (
  deps: Dependencies,
  request: RequestOf<Name>,
  options: OperationOptions,
) => AnswerOf<Name>;

/** Groups and watchlists differ in their members, not in their operations. */
export type GroupImplementation<Name extends keyof Methods> = (
  deps: Dependencies,
  kind: GroupKind,
  request: RequestOf<Name>,
  options: OperationOptions,
) => AnswerOf<Name>;

export const engineOptions = ({ signal }: OperationOptions): CallOptions => (signal ? { signal } : {});
