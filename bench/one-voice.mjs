// Results besides the match, for a recording or an enrollment: one speaker or several, consistent segments, the voice class. On DEV
// sets with sessions; the recordings of a session are of one person.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readRecording } from "../dist/audio/index.js";

const mostSpeakers = 60;

function sessions(corpora, set) {
  const folders = (path) => readdirSync(path).sort();
  return folders(join(corpora, set)).flatMap((speaker) => {
    const found = folders(join(corpora, set, speaker)).map((session) =>
      folders(join(corpora, set, speaker, session)).map((name) => join(corpora, set, speaker, session, name)),
    );
    return found.some((files) => files.length >= 3) ? [found] : [];
  });
}

const read = (path) => {
  const recording = readRecording(readFileSync(path));
  return joined(...[...recording.read(0)].map((samples) => ({ samples, rateHz: recording.rateHz })));
};

const joined = (...parts) => {
  const samples = new Float32Array(parts.reduce((n, part) => n + part.samples.length, 0));
  parts.reduce((at, part) => {
    samples.set(part.samples, at);
    return at + part.samples.length;
  }, 0);
  return { samples, rateHz: parts[0].rateHz };
};

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const deviation = (values) => Math.sqrt(mean(values.map((value) => (value - mean(values)) ** 2)));

/** Rows { set, what, of, right }: `right` of `of` results were correct; for the voice class the two deviations. */
export async function oneVoice(engine, corpora, sets) {
  const rows = [];
  const hear = async ({ samples, rateHz }) => engine.analyze(samples, rateHz);
  const voiceOf = ({ measures, embedding }) => ({ ...measures, embedding });
  for (const set of sets) {
    const people = sessions(corpora, set).slice(0, mostSpeakers);
    const enrolled = people.map((found) => found.find((files) => files.length >= 3).slice(0, 3));
    const heard = [];
    const told = { one: [0, 0], several: [0, 0], own: [0, 0], foreign: [0, 0] };
    const count = (kind, right) => {
      told[kind][0]++;
      if (right) told[kind][1]++;
    };
    for (const files of enrolled) heard.push(await Promise.all(files.map(async (path) => hear(read(path)))));
    for (const [i, files] of enrolled.entries()) {
      const j = (i + 1) % enrolled.length;
      const [own1, own2, own3] = files.map(read);
      const [other1, other2] = enrolled[j].map(read);
      count("one", (await hear(joined(own1, own2, own3))).speakers === 1);
      count("several", (await hear(joined(own1, own2, other1, other2))).speakers === 2);
      const [a, b, c] = heard[i];
      const stranger = heard[j][0];
      if ([a, b, c, stranger].some(({ embedding }) => embedding === null)) continue;
      const own = await engine.train([a, b, c].map(voiceOf));
      count(
        "own",
        own.segments.every(({ consistent }) => consistent),
      );
      const mixed = await engine.train([a, b, stranger].map(voiceOf));
      count("foreign", !mixed.segments[2].consistent && mixed.segments[0].consistent && mixed.segments[1].consistent);
    }
    for (const [kind, what] of [
      ["one", "12 s of one person: one speaker"],
      ["several", "8 s each of two people: several speakers"],
      ["own", "three segments of one person: all consistent"],
      ["foreign", "two of one person, one of another: that one left out"],
    ])
      rows.push({ set, what, of: told[kind][0], right: told[kind][1] });
    const classes = [];
    // One after the other: the engine's queue is bounded.
    for (const found of people) {
      const said = [];
      for (const [path] of found) said.push((await hear(read(path))).voiceClass);
      classes.push(said.filter((value) => value !== null));
    }
    const several = classes.filter((values) => values.length > 1);
    rows.push({
      set,
      what: "voice class, 0..100",
      of: several.length,
      within: Math.sqrt(mean(several.map((values) => deviation(values) ** 2))),
      between: deviation(classes.filter((values) => values.length > 0).map(mean)),
    });
  }
  return rows;
}
