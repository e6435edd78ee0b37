// Checks the recordings of a list of claims, and writes a CSV file. Run `npm install vivavoce`, then
//   node batch.mjs enrolled/ claims.csv > answers.csv
// The files enrolled/<person>/*.wav enroll a person. Each line of claims.csv is `person,file.wav`. A person or a recording that
// cannot be used is reported, and the others are processed.
import { readdir, readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { dirname, join, resolve } from "node:path";
import { openVoiceprints } from "vivavoce";

const [folder, list] = process.argv.slice(2);
if (!folder || !list) throw new Error("usage: node batch.mjs ENROLLED_FOLDER CLAIMS.csv");
const voice = await openVoiceprints();

const people = (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory());
for (const person of people.map(({ name }) => name).sort()) {
  const files = (await readdir(join(folder, person))).filter((name) => name.endsWith(".wav")).sort();
  try {
    const { trained, reason } = await voice.enroll(person, await Promise.all(files.map((name) => readFile(join(folder, person, name)))));
    if (!trained) console.error(`${person} is not enrolled: ${reason}`);
  } catch (error) {
    console.error(`${person} is not enrolled: ${error.message}`);
  }
}

const claims = (await readFile(list, "utf8")).trim().split(/\s*\n/).map((line) => line.split(","));
async function check([person, file]) {
  try {
    const { decision, reason, ratio, threshold } = await voice.verify(person, await readFile(resolve(dirname(list), file)));
    return [person, file, decision, reason, ratio?.toFixed(2), threshold?.toFixed(2)];
  } catch (error) {
    return [person, file, "ERROR", error.message.replaceAll(/[",\n]/g, " ")];
  }
}

// A few at once: the engine refuses calls when hundreds wait, and all recordings together may not fit in memory.
const answers = [];
const left = claims.entries();
async function checkSome() {
  for (const [i, claim] of left) answers[i] = await check(claim);
}
await Promise.all(Array.from({ length: 2 * availableParallelism() }, checkSome));
console.log("person,file,decision,reason,ratio,threshold");
for (const answer of answers) console.log(answer.join(","));
await voice.close();
