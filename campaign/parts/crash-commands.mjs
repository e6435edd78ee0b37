/**
 * Kills commands on an embedded store: `enroll`, `erase`, `people`, and `keys rotate`, with and without a new master key. After every kill the store
 * must open, with both master keys if one was being replaced; enrolled people are verified with a new recording, erased people must be gone, and a
 * killed command must succeed when it is run again.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readRecording } from "../../dist/audio/index.js";
import { pcm16Wav } from "../../dist/audio/wav-writer.js";
import { speak } from "../../dist/demo/voice.js";
import { openEmbeddedStore } from "../../dist/postgres.js";
import { VoiceprintsProcessor } from "../../dist/processor/voiceprints-processor.js";
import { OpenModels } from "../../dist/server/open-models.js";
import { Voiceprints } from "../../dist/voiceprints.js";
import { runCommand } from "./killed-command.mjs";

const SCOPE = "default";
const PEOPLE = 4;
const ENROLLED_FROM = 3;
/** Share of the commands that are not killed: otherwise hardly anybody would ever be enrolled. */
const FINISHED_SHARE = 0.4;
/** A recording that nobody is enrolled from. */
const CALL = 99;
const takeOf = (speaker, take) => pcm16Wav(speak({ speaker, seconds: 4, rateHz: 8000, seed: take }), 8000);

export async function commandsLane({ root, random, isOver, counts, violate: tell }) {
  const violate = (text) => tell(`commands: ${text}`);
  const location = join(root, "commands");
  const models = await OpenModels.open({ model: "vivavoce-2", scopeModels: {}, olderModels: [] }, { workers: 1 });
  const people = Array.from({ length: PEOPLE }, (_, i) => personOf(root, i + 1));
  let keys = { master: newKey(), previous: null };
  /** How long each command takes; the first of a kind is not killed. */
  const wholeMs = new Map();
  try {
    while (!isOver()) {
      const { name, args, begin = () => {}, done = () => {} } = pickCommand();
      begin();
      counts.starts++;
      const isKilled = wholeMs.has(name) && !random.chance(FINISHED_SHARE);
      const killMs = isKilled ? random.next() * 1.1 * wholeMs.get(name) : null;
      const { ended, said, errors, tookMs } = await runCommand([...args, "--json"], environment(), killMs);
      if (ended.signal === "SIGKILL") {
        counts.kills++;
        counts.killsAtCommands++;
      } else if (ended.code !== 0)
        violate(`${name} ended by itself (${ended.code}): ${(errors || said).slice(0, 700)}`);
      else {
        counts.acknowledged++;
        wholeMs.set(name, tookMs);
        done();
      }
      await check();
    }
  } finally {
    await models.close();
  }

  function pickCommand() {
    const person = random.pick(people);
    const { name } = person;
    const leave = (state) => () => {
      person.state = state;
    };
    // The first enrollment creates the store; until then, other commands say that there is none.
    switch (wholeMs.has("enroll") ? random.pick(["person", "person", "people", "rotate", "master"]) : "person") {
      case "people":
        return { name: "people", args: ["people"] };
      case "rotate":
        return { name: "keys rotate", args: ["keys", "rotate"] };
      case "master":
        return {
          name: "keys rotate with a new master key",
          args: ["keys", "rotate"],
          begin() {
            // After a kill it is run again, with the same two keys.
            if (keys.previous === null) keys = { master: newKey(), previous: keys.master };
          },
          done() {
            keys = { ...keys, previous: null };
          },
        };
      default:
        return person.state === "enrolled"
          ? { name: "erase", args: ["erase", name], begin: leave("leaving"), done: leave("gone") }
          : {
              name: "enroll",
              args: ["enroll", name, ...person.files],
              begin: leave("coming"),
              done: leave("enrolled"),
            };
    }
  }

  function environment() {
    return {
      VIVAVOCE_STORE: location,
      VIVAVOCE_MASTER_KEY: keys.master,
      ...(keys.previous && { VIVAVOCE_PREVIOUS_MASTER_KEY: keys.previous }),
    };
  }

  /** A killed command has taken effect or not; an enrollment may also have stopped in the middle. */
  async function check() {
    const bytes = (key) => Buffer.from(key, "hex");
    const store = await openEmbeddedStore(location, {
      masterKey: bytes(keys.master),
      ...(keys.previous && { previousMasterKey: bytes(keys.previous) }),
    });
    const processor = new VoiceprintsProcessor({ engine: models.engine, models, store, readRecording });
    const voices = new Voiceprints(processor, { scope: SCOPE, configset: "ivr-text-dependent" });
    try {
      for (const person of people) {
        const profile = await store.profiles.find(SCOPE, "person", person.name, "");
        if (person.state === "gone") {
          counts.erasedSought++;
          if (profile) violate(`${person.name} is back`);
          continue;
        }
        counts.readBack++;
        if (!profile?.template) {
          if (person.state === "enrolled") violate(`${person.name} is lost`);
          // A profile without a template is what a killed enrollment leaves, never a killed erasure.
          if (person.state === "leaving" && profile) violate(`${person.name} is half erased`);
          if (!profile) person.state = "gone";
          continue;
        }
        const { decision, reason } = await voices.verify(person.name, takeOf(person.speaker, CALL));
        if (decision !== "AUTHENTIC") violate(`${person.name} (${person.state}) is ${decision} (${reason})`);
        person.state = "enrolled";
      }
    } finally {
      await processor.close();
      await store.close();
    }
  }
}

const newKey = () => randomBytes(32).toString("hex");

function personOf(root, speaker) {
  const folder = join(root, "voices");
  mkdirSync(folder, { recursive: true });
  const files = Array.from({ length: ENROLLED_FROM }, (_, i) => join(folder, `${speaker}-${i + 1}.wav`));
  for (const [i, file] of files.entries()) writeFileSync(file, takeOf(speaker, i + 1));
  return { name: `p${speaker}`, speaker, files, state: "gone" };
}
