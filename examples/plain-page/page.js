import { openIndexedDbStore, openVoiceprints } from "./vivavoce/vivavoce.js";

const told = document.querySelector("#told");
const say = (text) => {
  told.textContent = text;
};
const person = "you";
const voice = await openVoiceprints({ store: await openIndexedDbStore("plain-page") });
say((await voice.people()).includes(person) ? "You are enrolled here. Check a recording." : "Ready. Enroll three recordings.");

/** Messages of errors are sentences that can be shown to people. */
const answering = (work) => async (event) => {
  try {
    say("Listening…");
    say(await work([...event.target.files]));
  } catch (error) {
    say(error.message);
  }
};

document.querySelector("#enroll").onchange = answering(async (files) => {
  const { trained, missingRecordings, missingSpeechSeconds } = await voice.enroll(person, files);
  if (trained) return "You are enrolled. Check a recording.";
  return `Not yet: ${missingRecordings} more recordings and ${missingSpeechSeconds.toFixed(0)} s more speech needed.`;
});
document.querySelector("#check").onchange = answering(async ([file]) => {
  const { decision, reason, ratio, threshold } = await voice.verify(person, file);
  return ratio === null ? `${decision}: ${reason}` : `${decision}: ${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}`;
});
