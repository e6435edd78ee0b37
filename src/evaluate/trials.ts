import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** A comparison to make: the recordings that enroll, the recording to test, and the truth. */
export interface Trial {
  /** Index into `TrialSet.models`. */
  readonly model: number;
  /** Index into `TrialSet.files`. */
  readonly test: number;
  readonly same: boolean;
}

export interface TrialSet {
  /** Absolute paths. */
  readonly files: readonly string[];
  /** Speaker number of each file. */
  readonly speakers: readonly number[];
  /** Files that enroll together. */
  readonly models: readonly (readonly number[])[];
  readonly trials: readonly Trial[];
  /** What counted as a session, if the folder has no sessions. */
  readonly note?: string;
}

/** A folder or list that cannot be evaluated; the message says which line or path and why. */
export class TrialSetError extends Error {
  override readonly name = "TrialSetError";
}

/** Names of WAV files and of those that ffmpeg can convert (src/audio/to-wav.ts). Hidden files are copies that other systems leave behind. */
export const isAudioName = (name: string): boolean =>
  /^[^.].*\.(wav|flac|mp3|opus|og[ga]|m4a|mp4|aac|aiff?|aifc|au|webm|mka|amr|3gp|caf)$/i.test(name);

/** A folder of `speaker/session/file.wav` or `speaker/file.wav`, or a text list of `label enroll[,enroll…] test`. */
export async function readTrialSet(path: string): Promise<TrialSet> {
  const found = await stat(path).catch(() => null);
  if (found === null) throw new TrialSetError(`${path}: no such folder or list`);
  return found.isDirectory() ? fromFolder(path) : fromList(path);
}

class FileNumbers {
  readonly files: string[] = [];
  readonly #numbers = new Map<string, number>();
  number(path: string): number {
    const known = this.#numbers.get(path);
    if (known !== undefined) return known;
    this.#numbers.set(path, this.files.length);
    return this.files.push(path) - 1;
  }
}

const LABELS: ReadonlyMap<string, boolean> = new Map([
  ["1", true],
  ["0", false],
  ["target", true],
  ["nontarget", false],
  ["tgt", true],
  ["imp", false],
  ["same", true],
  ["different", false],
  ["genuine", true],
  ["impostor", false],
]);

/** Three columns, between tabs or, if there are no three, between spaces. */
function columnsOf(line: string): readonly string[] {
  const columns = line.trim().split(/ *\t */);
  return columns.length === 3 ? columns : line.trim().split(/\s+/);
}

/** Parses a list; relative paths start at `root`. Empty lines and lines that begin with `#` are skipped. */
export function parseTrialList(text: string, root: string): TrialSet {
  const numbers = new FileNumbers();
  const models: number[][] = [];
  const modelNumbers = new Map<string, number>();
  const trials: Trial[] = [];
  text.split(/\r?\n/).forEach((line, index) => {
    const words = columnsOf(line);
    if (words[0] === "" || words[0]!.startsWith("#")) return;
    const at = `line ${index + 1}`;
    if (words.length !== 3)
      throw new TrialSetError(
        `${at}: expected "label enroll[,enroll…] test", got ${words.length === 1 ? "one word" : `${words.length} words`} (if a name has spaces, separate the columns with tabs)`,
      );
    const [label, enroll, test] = words as [string, string, string];
    const same = LABELS.get(label.toLowerCase());
    if (same === undefined) {
      throw new TrialSetError(`${at}: label must be one of ${[...LABELS.keys()].join(", ")}, got "${label}"`);
    }
    const absolute = (path: string) => (isAbsolute(path) ? path : resolve(root, path));
    const enrolled = enroll.split(",").map((path) => {
      if (path === "") throw new TrialSetError(`${at}: the name of an enrollment file is empty`);
      return numbers.number(absolute(path));
    });
    const tested = numbers.number(absolute(test));
    if (enrolled.includes(tested)) throw new TrialSetError(`${at}: ${test} is both enrolled and tested`);
    const key = enrolled.join(",");
    let model = modelNumbers.get(key);
    if (model === undefined) {
      model = models.push(enrolled) - 1;
      modelNumbers.set(key, model);
    }
    trials.push({ model, test: tested, same });
  });
  if (trials.length === 0) throw new TrialSetError("the list has no trials");
  return { files: numbers.files, models, trials, speakers: speakersOf(numbers.files, root, models, trials) };
}

async function fromList(path: string): Promise<TrialSet> {
  const text = await readFile(path, "utf8");
  if (text.includes("\0"))
    throw new TrialSetError(`${path}: not a text list (to measure one recording use "vivavoce measure")`);
  try {
    return parseTrialList(text, dirname(resolve(path)));
  } catch (error) {
    if (error instanceof TrialSetError) throw new TrialSetError(`${path}: ${error.message}`);
    throw error;
  }
}

/**
 * Groups files by speaker, for the bootstrap: by the labels of the trials, and by the folder of `speaker/session/file`, or else of `speaker/file`.
 * A list may name files in any layout, so a layout in which different people share a folder is not used.
 */
function speakersOf(
  files: readonly string[],
  root: string,
  models: readonly (readonly number[])[],
  trials: readonly Trial[],
): number[] {
  const parts = files.map((file) => relative(root, file).split(sep));
  for (const namesBelowSpeaker of [2, 1]) {
    const folders = parts.map((names) => names.slice(0, -namesBelowSpeaker).join(sep));
    const speakers = speakersBy(folders, models, trials);
    const isRefuted = trials.some(({ model, test, same }) => !same && speakers[models[model]![0]!] === speakers[test]);
    if (!isRefuted) return speakers;
  }
  return speakersBy(
    files.map(() => ""),
    models,
    trials,
  );
}

/** Union-find over the files. Those with the same folder are of one speaker; an empty folder says nothing. */
function speakersBy(
  folders: readonly string[],
  models: readonly (readonly number[])[],
  trials: readonly Trial[],
): number[] {
  const parents = folders.map((_, i) => i);
  const find = (i: number): number => {
    while (parents[i] !== i) {
      parents[i] = parents[parents[i]!]!;
      i = parents[i]!;
    }
    return i;
  };
  const join = (a: number, b: number) => {
    parents[find(a)] = find(b);
  };
  const firstOfFolder = new Map<string, number>();
  folders.forEach((folder, i) => {
    const first = firstOfFolder.get(folder);
    if (first === undefined) firstOfFolder.set(folder, i);
    else if (folder !== "") join(first, i);
  });
  for (const model of models) for (const file of model) join(model[0]!, file);
  for (const trial of trials) if (trial.same) join(models[trial.model]![0]!, trial.test);
  return parents.map((_, i) => find(i));
}

interface SessionFiles {
  readonly speaker: string;
  readonly session: string;
  readonly files: readonly string[];
}

const ENROLLING_FILES = 3;

/**
 * Trials of a folder: the first three recordings of each session enroll; every recording of another session is tested against
 * the same speaker and all others. If no speaker has two sessions, every other recording of a speaker counts as
 * another session, and errors are those within one session.
 */
async function fromFolder(folder: string): Promise<TrialSet> {
  let sessions = await sessionsOf(folder);
  if (sessions.length === 0)
    throw new TrialSetError(`${folder}: found no recordings named speaker/session/file.wav or speaker/file.wav`);
  const sessionCounts = new Map<string, number>();
  for (const { speaker } of sessions) sessionCounts.set(speaker, (sessionCounts.get(speaker) ?? 0) + 1);
  const halved = Math.max(...sessionCounts.values()) < 2;
  if (halved) sessions = sessions.flatMap(halves);

  const numbers = new FileNumbers();
  const numbered = sessions.map((session) => ({
    ...session,
    numbers: session.files.map((file) => numbers.number(file)),
  }));
  const speakerNumbers = new Map([...sessionCounts.keys()].map((speaker, i) => [speaker, i]));
  const speakers: number[] = [];
  for (const session of numbered)
    for (const file of session.numbers) speakers[file] = speakerNumbers.get(session.speaker)!;

  const models: number[][] = [];
  const trials: Trial[] = [];
  for (const enrolling of numbered) {
    const model = models.push(enrolling.numbers.slice(0, ENROLLING_FILES)) - 1;
    for (const tested of numbered) {
      if (tested.session === enrolling.session && tested.speaker === enrolling.speaker) continue;
      const same = tested.speaker === enrolling.speaker;
      for (const test of tested.numbers) trials.push({ model, test, same });
    }
  }
  if (!trials.some((trial) => trial.same))
    throw new TrialSetError(`${folder}: no speaker has two recordings to compare`);
  if (trials.every((trial) => trial.same))
    throw new TrialSetError(`${folder}: found only one speaker; at least two are needed`);
  const note =
    "no speaker has two sessions: every other recording of a speaker counts as another session, so errors are those within one session";
  return { files: numbers.files, speakers, models, trials, ...(halved ? { note } : {}) };
}

function halves({ speaker, session, files }: SessionFiles): SessionFiles[] {
  const half = (parity: number) => files.filter((_, i) => i % 2 === parity);
  return [half(0), half(1)]
    .map((part, i) => ({ speaker, session: `${session}#${i}`, files: part }))
    .filter((part) => part.files.length > 0);
}

async function sessionsOf(folder: string): Promise<SessionFiles[]> {
  const sessions: SessionFiles[] = [];
  for (const speaker of await subfolders(folder)) {
    const loose = await audioFiles(join(folder, speaker));
    if (loose.length > 0) sessions.push({ speaker, session: "", files: loose });
    for (const session of await subfolders(join(folder, speaker))) {
      const files = await audioFiles(join(folder, speaker, session));
      if (files.length > 0) sessions.push({ speaker, session, files });
    }
  }
  return sessions;
}

async function audioFiles(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  const files = entries.filter((entry) => !entry.isDirectory() && isAudioName(entry.name));
  return files.map(({ name }) => resolve(path, name)).sort();
}

async function subfolders(path: string): Promise<string[]> {
  const names = (await readdir(path)).filter((name) => !name.startsWith("."));
  // Not by the entry's own kind: a link to a folder is a folder too.
  const kinds = await Promise.all(names.map((name) => stat(join(path, name)).catch(() => null)));
  return names.filter((_, i) => kinds[i]?.isDirectory()).sort();
}
