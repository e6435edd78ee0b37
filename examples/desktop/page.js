import { startRecording } from "./microphone/index.js";
import { openIndexedDbStore, openVoiceprints } from "./vivavoce/vivavoce.js";

const [told, level, enroll, check] = ["#told", "#level", "#enroll", "#check"].map((one) => document.querySelector(one));
const say = (text) => {
  told.textContent = text;
};
const person = "you";
const voice = await openVoiceprints({ store: await openIndexedDbStore("desktop") });
say((await voice.people()).includes(person) ? "You are enrolled here." : "Ready. Enroll: speak for a few seconds, three times.");
for (const button of [enroll, check]) button.disabled = false;

let recorder = null;
let busy = false;
/** The first click starts recording, the second stops it and uses the recording. */
const recording = (button, other, use) => async () => {
  if (busy) return; // a double click would open the microphone twice
  busy = true;
  try {
    if (!recorder) {
      recorder = await startRecording({
        level: (levelDb) => {
          level.value = Math.max(0, 1 + levelDb / 60);
        },
        state: (state) => say({ muted: "Your microphone is muted.", silent: "Hardly any sound is coming in.", sound: "Speak now." }[state]),
        lost: () => say("The microphone was disconnected."),
      });
      other.disabled = true;
      button.setAttribute("aria-pressed", "true");
      say("Speak now.");
      return;
    }
    const { stop } = recorder;
    [recorder, other.disabled] = [null, false];
    button.setAttribute("aria-pressed", "false");
    say("Listening…");
    say(await use(await stop()));
  } catch (error) {
    say(error.message);
  } finally {
    busy = false;
  }
};

enroll.onclick = recording(enroll, check, async (audio) => {
  const { trained, missingRecordings, missingSpeechSeconds } = await voice.enroll(person, [audio]);
  if (trained) return "You are enrolled.";
  return `Not yet: ${missingRecordings} more recordings and ${missingSpeechSeconds.toFixed(0)} s more speech needed.`;
});
check.onclick = recording(check, enroll, async (audio) => {
  const { decision, reason, ratio, threshold } = await voice.verify(person, audio);
  return ratio === null ? `${decision}: ${reason}` : `${decision}: ${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}`;
});
