// Two people in one channel: how much verification of the caller loses against a separate channel. Mixtures of DEV recordings: two of the caller
// and two of another person, the agent, equally loud, in turns of 2 and 4 s; one after the other, or each starting 0.6 s before the last one ends.
//   npm run bench:accuracy -- --two-voices --corpora DIR [--sets wuw-dev,cvau-dev]
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readRecording } from "../dist/audio/index.js";
import { openEngine } from "../dist/engine/index.js";
import { equalErrorRate, sortTrials } from "../dist/evaluate/metrics.js";
import { callerVoices, voicesCompared } from "../dist/processor/caller-voice.js";
import { builtInConfigurationSets } from "../dist/voiceprint/configuration-set.js";
import { judge, judgedEvidence } from "../dist/voiceprint/decision.js";

const overlapSeconds = 0.6;
const maxCalls = 40;
const callsOfOne = 3;
const set = builtInConfigurationSets["ivr-text-dependent"];
const targetRate = set.targetFalseAcceptRate.authentication;
/** Share of the callers accepted in a clean channel that may be lost. */
const mostLost = 0.25;

const folders = (path) => readdirSync(path).sort();

function read(path) {
  const recording = readRecording(readFileSync(path));
  const samples = new Float32Array(recording.frames);
  let at = 0;
  for (const chunk of recording.read(0)) {
    samples.set(chunk, at);
    at += chunk.length;
  }
  return { samples, rateHz: recording.rateHz };
}

const loudness = (samples) => Math.sqrt(samples.reduce((sum, x) => sum + x * x, 0) / samples.length);

/** Each turn begins this many samples before the last one ends. */
function inTurns(turns, overlap) {
  let length = 0;
  const placed = turns.map((samples) => {
    const at = Math.max(0, length - overlap);
    length = at + samples.length;
    return { samples, at };
  });
  const mixed = new Float32Array(length);
  for (const { samples, at } of placed) for (let i = 0; i < samples.length; i++) mixed[at + i] += samples[i];
  return mixed;
}

function peopleOf(corpora, name) {
  const root = join(corpora, name);
  return folders(root).flatMap((speaker) => {
    const sessions = folders(join(root, speaker)).map((session) =>
      folders(join(root, speaker, session)).map((file) => join(root, speaker, session, file)),
    );
    const enrolled = sessions.findIndex((files) => files.length >= 3);
    const later = sessions.filter((files, i) => i !== enrolled && files.length >= 2);
    return enrolled >= 0 && later.length > 0 ? [{ enrolled: sessions[enrolled].slice(0, 3), later }] : [];
  });
}

async function templateOf(engine, files) {
  const voices = [];
  for (const path of files) {
    const { samples, rateHz } = read(path);
    const { measures, embedding } = await engine.analyze(samples, rateHz);
    if (embedding) voices.push({ ...measures, embedding });
  }
  return (await engine.train(voices)).template;
}

/** Calls of each person in turn, each with a new agent. */
function callsOf(people) {
  const calls = [];
  for (let n = 0; n < callsOfOne; n++)
    for (const [i, person] of people.entries()) {
      const agent = (i + 1 + n) % people.length;
      if (person.later[n] && agent !== i) calls.push({ caller: i, agent, files: person.later[n] });
    }
  return calls.slice(0, maxCalls);
}

function audioOf(call, people) {
  const halves = ({ samples }) => {
    const middle = samples.length >> 1;
    return [samples.subarray(0, middle), samples.subarray(middle)];
  };
  const [caller1, caller2] = call.files.slice(0, 2).map(read);
  const [agent1, agent2] = people[call.agent].later[0].slice(0, 2).map(read);
  const gain = loudness(caller1.samples) / loudness(agent1.samples);
  for (const { samples } of [agent1, agent2]) for (let i = 0; i < samples.length; i++) samples[i] *= gain;
  const [c1, c2] = halves(caller2);
  const [a1, a2] = halves(agent2);
  const turns = [a1, caller1.samples, agent1.samples, c1, a2, c2];
  const { rateHz } = caller1;
  return {
    rateHz,
    alone: inTurns([caller1.samples, c1, c2], 0),
    turns: inTurns(turns, 0),
    overlapping: inTurns(turns, Math.round(overlapSeconds * rateHz)),
  };
}

async function heard(engine, samples, rateHz, separateVoices) {
  const stream = await engine.stream(rateHz, { separateVoices });
  await stream.push(samples.slice());
  const analysis = await stream.analysis();
  await stream.close();
  return analysis;
}

export async function twoVoices({ corpora, sets, model, workers }) {
  const engine = await openEngine({ workers, ...(model ? { model } : {}) });
  const rows = [];
  for (const name of sets) {
    const people = [];
    for (const person of peopleOf(corpora, name)) {
      const template = await templateOf(engine, person.enrolled);
      if (template) people.push({ ...person, template });
    }
    const calls = callsOf(people);
    const conditions = new Map();
    const add = async (title, call, separation, analysis) => {
      const trials = conditions.get(title) ?? [];
      conditions.set(title, trials);
      trials.push(...(await trialsOf(engine, people, call, separation, analysis)));
    };
    for (const [n, call] of calls.entries()) {
      const { rateHz, ...audio } = audioOf(call, people);
      const agent = { agent: people[call.agent].template };
      await add("caller alone", call, null, await heard(engine, audio.alone, rateHz, false));
      for (const how of ["turns", "overlapping"]) {
        await add(`${how}, not separated`, call, null, await heard(engine, audio[how], rateHz, false));
        const separated = await heard(engine, audio[how], rateHz, true);
        await add(`${how}, agent's print`, call, agent, separated);
        await add(`${how}, no print`, call, { agent: null }, separated);
      }
      console.error(`${name}: ${n + 1} of ${calls.length} calls`);
    }
    const clean = summary(conditions.get("caller alone"));
    for (const [title, trials] of conditions) {
      const found = summary(trials);
      const lost = 1 - found.accepted / clean.accepted;
      rows.push({ set: name, title, calls: calls.length, ...found, lost, met: lost <= mostLost });
    }
  }
  await engine.close();
  return rows;
}

/** The call against all prints except the agent's. */
async function trialsOf(engine, people, { caller, agent }, separation, analysis) {
  const { voices } = await callerVoices({ engine, set }, separation, analysis, {});
  const candidates = voicesCompared(separation);
  const trials = [];
  for (const [i, { template }] of people.entries()) {
    if (i === agent) continue;
    const judged = [];
    for (const voice of voices) {
      const [score] = await engine.score([template], { ...voice.measures, embedding: voice.embedding });
      const comparisons = { targetRate, candidates, looks: 1 };
      const evidence = judgedEvidence(score, comparisons, (rate) => engine.threshold(rate, score));
      judged.push({ verdict: judge(evidence), raw: score.raw });
    }
    trials.push({
      isSame: i === caller,
      isAccepted: judged.some(({ verdict }) => verdict === "above"),
      score: judged.length > 0 ? Math.max(...judged.map(({ raw }) => raw)) : null,
    });
  }
  return trials;
}

function summary(trials) {
  const share = (some) => some.filter(({ isAccepted }) => isAccepted).length / some.length;
  const same = trials.filter(({ isSame }) => isSame);
  const different = trials.filter(({ isSame }) => !isSame);
  const scored = trials.filter(({ score }) => score !== null);
  return {
    accepted: share(same),
    falselyAccepted: share(different),
    impostors: different.length,
    unscored: same.filter(({ score }) => score === null).length,
    equalErrorRate: equalErrorRate(
      sortTrials(
        scored.map(({ score }) => score),
        scored.map(({ isSame }) => isSame),
      ),
    ),
  };
}
