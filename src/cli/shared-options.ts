import { availableParallelism } from "node:os";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { RawEncoding } from "../audio/port.js";
import { mostWorkers } from "../engine/threads.js";
import { CommandError } from "./command-error.js";

/** Options of every command on voiceprints, local or on a box. */
export interface PlaceOptions {
  readonly json?: boolean;
  readonly url?: string;
  readonly token?: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly store?: string;
  readonly scope: string;
  readonly configset: string;
}

/** An option that is also an environment variable: `--client-id` is VIVAVOCE_CLIENT_ID. */
export function variable(flags: string, description: string): Option {
  const option = new Option(flags, description);
  return option.env(`VIVAVOCE_${option.name().replaceAll("-", "_").toUpperCase()}`);
}

export function withPlace(command: Command): Command {
  return command
    .addOption(
      variable("--url <url>", "use the box (a running vivavoce server) at this address instead of the local store"),
    )
    .addOption(variable("--token <token>", "access token for the box"))
    .addOption(variable("--client-id <id>", "client id to get a token with"))
    .addOption(variable("--client-secret <secret>", "client secret to get a token with"))
    .addOption(variable("--store <store>", "local store: a folder, or postgres://…"))
    .option("--scope <id>", "biometric scope; voices of different scopes are never compared", "default")
    .option("--configset <id>", "configuration set: limits and target rates", "ivr-text-dependent")
    .option("--json", "print the result as JSON");
}

/** The format of headerless audio. */
export interface RawOptions {
  readonly encoding: RawEncoding;
  readonly rate: number;
  readonly channels: number;
}

export interface AudioOptions extends Partial<RawOptions> {
  readonly channel?: number;
}

export function withAudio(command: Command): Command {
  return command
    .option(
      "--channel <n>",
      "channel of a multi-channel recording: 1 is the first; 0, the default, mixes all",
      wholeNumber(0, 64),
    )
    .addOption(new Option("--encoding <name>", "encoding of headerless files").choices(["pcm16", "alaw", "mulaw"]))
    .option("--rate <hz>", "sampling rate of headerless files", wholeNumber(4000, 192_000))
    .option("--channels <n>", "channels of headerless files; 1 by default", wholeNumber(1, 64));
}

export function mediaFormat({ encoding, rate, channels }: AudioOptions): RawOptions | undefined {
  if (encoding === undefined) {
    if (rate !== undefined || channels !== undefined)
      throw new CommandError("--rate and --channels are for headerless files: give --encoding too");
    return undefined;
  }
  if (rate === undefined) throw new CommandError(`--encoding ${encoding} needs --rate`);
  return { encoding, rate, channels: channels ?? 1 };
}

export const WORKERS = new Option("--workers <n>", "number of threads").argParser(wholeNumber(1, mostWorkers));

/** Threads of a command that analyzes many recordings. */
export const workersOf = ({ workers }: { readonly workers?: number }): number =>
  workers ?? Math.min(mostWorkers, availableParallelism());

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (!Number.isInteger(value) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };
}
