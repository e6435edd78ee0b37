import { isUtf8 } from "node:buffer";
import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { seededRandom } from "./bootstrap.js";
import { sampleOf } from "./sample.js";

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
  /** Present if `trials` is a random sample, because there are too many. */
  readonly sampled?: Sampled;
  /** What counted as a session, if the folder has no sessions, which recordings are not used, and which trials are repeated. */
  readonly note?: string;
}

export interface Sampled {
  /** All trials of the folder or list. */
  readonly from: { readonly same: number; readonly different: number };
  /** For lists, which need every trial of a tested recording: some recordings, each with its own speaker and with many others. */
  readonly callers: readonly Trial[];
}

/**
 * Most trials of each kind: this many fit in the memory of an ordinary machine, and at a false-match rate of 0.01 % this many impostors give 50 errors.
 * Every trial is as likely to be in the sample as any other, so rates are unbiased.
 */
export const MOST_TRIALS = 500_000;

/** The engine trains a template from at most this many segments. */
export const MOST_ENROLLED = 256;

/** A folder or list that cannot be evaluated; the message says which line or path and why. */
export class TrialSetError extends Error {
  override readonly name = "TrialSetError";
}

/** Names of WAV files and of those that ffmpeg can convert (src/audio/to-wav.ts). Hidden files are copies that other systems leave behind. */
export const isAudioName = (name: string): boolean =>
  /^[^.].*\.(wav|flac|mp3|opus|og[ga]|m4a|mp4|aac|aiff?|aifc|au|webm|mka|amr|3gp|caf)$/is.test(name);

/** A folder of `speaker/session/file.wav` or `speaker/file.wav`, or a text list of `label enroll[,enroll…] test`. */
export async function readTrialSet(path: string, mostTrials = MOST_TRIALS): Promise<TrialSet> {
  const found = await stat(path).catch(() => null);
  if (found === null) throw new TrialSetError(`${path}: no such folder or list`);
  if (found.isDirectory()) return fromFolder(path, mostTrials);
  // A list from a pipe (`<(…)`, /dev/stdin) has no folder of its own.
  return fromList(path, found.isFile() ? dirname(resolve(path)) : process.cwd(), mostTrials);
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
  ...["1", "target", "tgt", "same", "genuine"].map((label) => [label, true] as const),
  ...["0", "nontarget", "imp", "different", "impostor"].map((label) => [label, false] as const),
]);

/** Three columns, between tabs or, if there are no three, between spaces. */
function columnsOf(line: string): readonly string[] {
  const columns = line.trim().split(/ *\t */);
  return columns.length === 3 ? columns : line.trim().split(/\s+/);
}

/** Parses a list; relative paths start at `root`. Empty lines and lines that begin with `#` are skipped. */
export function parseTrialList(text: string, root: string, mostTrials = MOST_TRIALS): TrialSet {
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
    if (same === undefined)
      throw new TrialSetError(`${at}: label must be one of ${[...LABELS.keys()].join(", ")}, got "${label}"`);
    const names = enroll.split(",");
    if (names.length > MOST_ENROLLED)
      throw new TrialSetError(
        `${at}: at most ${MOST_ENROLLED} recordings can be enrolled together, got ${names.length}`,
      );
    const enrolled = names.map((path) => {
      if (path === "") throw new TrialSetError(`${at}: the name of an enrollment file is empty`);
      return numbers.number(resolve(root, path));
    });
    const tested = numbers.number(resolve(root, test));
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
  const { files } = numbers;
  const repeated = repeatedIn(trials, (model, test) => `${models[model]!.map((i) => files[i]).join()} ${files[test]}`);
  const speakers = speakersOf(files, root, models, trials);
  return { files, models, speakers, ...sampledList(trials, mostTrials), ...(repeated ? { note: repeated } : {}) };
}

/** Says so if trials are in a list more than once; refuses a list that contradicts itself. */
function repeatedIn(trials: readonly Trial[], nameOf: (model: number, test: number) => string): string | null {
  // Numbers, because sets of millions of strings take too much memory, and more than 16 million entries are impossible.
  const most = 2 ** 26;
  const keys = Float64Array.from(trials, ({ model, test, same }) => 2 * (model * most + test) + (same ? 1 : 0)).sort();
  const named = (key: number) => nameOf(Math.floor(key / 2 / most), Math.floor(key / 2) % most);
  let first = Number.NaN;
  let repeated = 0;
  for (let i = 1; i < keys.length; i++) {
    const [before, key] = [keys[i - 1]!, keys[i]!];
    if (before === key && repeated++ === 0) first = key;
    if (before % 2 === 0 && key === before + 1)
      throw new TrialSetError(`a trial has both labels, for the same speaker and for different ones: ${named(key)}`);
  }
  return repeated === 0
    ? null
    : `${repeated} of ${trials.length} lines repeat a trial, which then counts more than once, such as ${named(first)}`;
}

function sampledList(trials: readonly Trial[], most: number): Pick<TrialSet, "trials" | "sampled"> {
  const kinds = [true, false].map((same) => trials.filter((trial) => trial.same === same));
  const [same, different] = kinds.map(({ length }) => length) as [number, number];
  if (same <= most && different <= most) return { trials };
  const random = seededRandom(1);
  const kept = kinds.flatMap((kind) => Array.from(sampleOf(kind.length, most, random), (i) => kind[i]!));
  return { trials: kept, sampled: { from: { same, different }, callers: wholeTests(trials, most, random) } };
}

/** All trials of some tested recordings, at most `most` in total. */
function wholeTests(trials: readonly Trial[], most: number, random: () => number): Trial[] {
  const counts = new Map<number, number>();
  for (const { test } of trials) counts.set(test, (counts.get(test) ?? 0) + 1);
  const chosen = new Set<number>();
  let left = most;
  for (const { test } of [...counts.keys()].map((test) => ({ test, at: random() })).sort((a, b) => a.at - b.at)) {
    left -= counts.get(test)!;
    if (left < 0) break;
    chosen.add(test);
  }
  return trials.filter(({ test }) => chosen.has(test));
}

/** As some programs save text: it begins with a mark of the byte order. */
const isUtf16 = (bytes: Uint8Array) =>
  (bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff);

const TOO_LARGE: ReadonlySet<string | undefined> = new Set(["ERR_STRING_TOO_LONG", "ERR_FS_FILE_TOO_LARGE"]);

async function fromList(path: string, root: string, mostTrials: number): Promise<TrialSet> {
  try {
    const bytes = await readFile(path);
    if (bytes.includes(0) && !isUtf16(bytes))
      throw new TrialSetError('not a text list (to measure one recording use "vivavoce measure")');
    if (!isUtf8(bytes)) throw new TrialSetError("the list is not in UTF-8; save it in that encoding");
    return parseTrialList(bytes.toString(), root, mostTrials);
  } catch (error) {
    if (error instanceof TrialSetError) throw new TrialSetError(`${path}: ${error.message}`);
    if (TOO_LARGE.has((error as NodeJS.ErrnoException).code))
      throw new TrialSetError(`${path}: at most 512 MB of a list can be read; evaluate a part of its lines`);
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
 * the same speaker and all others. If no speaker has two sessions, each speaker's recordings are split into two that count
 * as sessions, and all errors are within one session.
 */
async function fromFolder(folder: string, mostTrials: number): Promise<TrialSet> {
  let sessions = await sessionsOf(folder);
  if (sessions.length === 0)
    throw new TrialSetError(`${folder}: found no recordings named speaker/session/file.wav or speaker/file.wav`);
  const sessionCounts = new Map<string, number>();
  for (const { speaker } of sessions) sessionCounts.set(speaker, (sessionCounts.get(speaker) ?? 0) + 1);
  const halved = sessions.length === sessionCounts.size;
  if (halved) sessions = sessions.flatMap(halves);

  const files = sessions.flatMap((session) => session.files);
  const speakers = numberedSpeakers(sessions);
  const everybody = { first: 0, end: files.length };
  const random = seededRandom(1);
  const same = trialsAgainst(
    speakers.flatMap(({ span, enrollments }) => enrollments.map((own) => ({ within: span, without: own }))),
    true,
    mostTrials,
    random,
  );
  const different = trialsAgainst(
    speakers.flatMap(({ span, enrollments }) => enrollments.map(() => ({ within: everybody, without: span }))),
    false,
    mostTrials,
    random,
  );
  if (same.all === 0) throw new TrialSetError(`${folder}: no speaker has two recordings to compare`);
  if (different.all === 0) throw new TrialSetError(`${folder}: found only one speaker; at least two are needed`);
  const isSample = same.all > mostTrials || different.all > mostTrials;
  const from = { same: same.all, different: different.all };
  const notes = [
    ...(halved
      ? [
          "no speaker has two sessions: each speaker's recordings are split into two that count as sessions, so all errors are within one session",
        ]
      : []),
    ...(await unusedIn(folder, files)),
  ];
  return {
    files,
    speakers: speakers.flatMap(({ span }, speaker) => new Array<number>(span.end - span.first).fill(speaker)),
    models: speakers.flatMap(({ enrollments }) => enrollments.map(enrolling)),
    trials: [...same.trials, ...different.trials].sort((a, b) => a.model - b.model || a.test - b.test),
    ...(isSample ? { sampled: { from, callers: drawnCallers(speakers, same.trials, random) } } : {}),
    ...(notes.length > 0 ? { note: notes.join("; ") } : {}),
  };
}

/** Says so if there are recordings elsewhere in the folder. */
async function unusedIn(folder: string, files: readonly string[]): Promise<string[]> {
  const used = new Set(files);
  const unused = (await audioBelow(resolve(folder))).filter((path) => !used.has(path));
  if (unused.length === 0) return [];
  return [
    `not used, because not named speaker/session/file or speaker/file: ${unused.length} recordings, such as ${unused.sort()[0]}`,
  ];
}

/** Numbers of consecutive files. */
interface Span {
  readonly first: number;
  readonly end: number;
}

interface NumberedSpeaker {
  readonly span: Span;
  /** Number of the speaker's first enrollment. */
  readonly model: number;
  /** One for each session. */
  readonly enrollments: readonly Span[];
}

const enrolling = ({ first, end }: Span): number[] =>
  Array.from({ length: Math.min(end - first, ENROLLING_FILES) }, (_, i) => first + i);

/** The sessions of a speaker follow each other. */
function numberedSpeakers(sessions: readonly SessionFiles[]): NumberedSpeaker[] {
  const speakers: { span: Span; model: number; enrollments: Span[] }[] = [];
  let first = 0;
  for (const [model, { speaker, files }] of sessions.entries()) {
    const span = { first, end: first + files.length };
    if (model === 0 || sessions[model - 1]!.speaker !== speaker) speakers.push({ span, model, enrollments: [] });
    const known = speakers.at(-1)!;
    known.enrollments.push(span);
    known.span = { first: known.span.first, end: span.end };
    first = span.end;
  }
  return speakers;
}

/** Each enrollment is tested with the files of `within` that are not in `without`, a part of it. At most `most` trials are drawn from all of them. */
function trialsAgainst(
  enrollments: readonly { readonly within: Span; readonly without: Span }[],
  same: boolean,
  most: number,
  random: () => number,
): { trials: Trial[]; all: number } {
  const starts: number[] = [];
  let all = 0;
  for (const { within, without } of enrollments) {
    starts.push(all);
    all += within.end - within.first - (without.end - without.first);
  }
  let model = 0;
  const trials = Array.from(sampleOf(all, most, random), (index) => {
    while (starts[model + 1]! <= index) model++;
    const { within, without } = enrollments[model]!;
    const file = within.first + index - starts[model]!;
    return { model, test: file < without.first ? file : file + without.end - without.first, same };
  });
  return { trials, all };
}

/** Recordings that are compared with lists, and other speakers: enough for the longest list, even if some cannot be enrolled. */
export const CALLERS = 400;
export const MOST_OTHERS = 1100;

/** Some tested recordings, each with its trials of the same speaker and with one enrollment of each of many other speakers. */
function drawnCallers(speakers: readonly NumberedSpeaker[], same: readonly Trial[], random: () => number): Trial[] {
  const own = new Map<number, Trial[]>();
  for (const trial of same) own.set(trial.test, [...(own.get(trial.test) ?? []), trial]);
  const tests = [...own.keys()];
  return Array.from(sampleOf(tests.length, CALLERS, random), (i) => tests[i]!).flatMap((test) => {
    const others = speakers.filter(({ span }) => test < span.first || test >= span.end);
    const met = Array.from(sampleOf(others.length, MOST_OTHERS, random), (i) => others[i]!);
    const drawn = met.map(({ model, enrollments }) => model + Math.floor(random() * enrollments.length));
    return [...own.get(test)!, ...drawn.map((model) => ({ model, test, same: false }))];
  });
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

/** Links are not followed, because they may form a loop. */
async function audioBelow(path: string): Promise<string[]> {
  const entries = (await readdir(path, { withFileTypes: true })).filter(({ name }) => !name.startsWith("."));
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => audioBelow(join(path, name)));
  return (await Promise.all([audioFiles(path), ...below])).flat();
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
