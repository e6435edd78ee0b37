import { connectVoiceprints } from "vivavoce/client";
import { openMicrophone } from "vivavoce/microphone";

const [person, speak, told] = ["#person", "#speak", "#told"].map((one) => document.querySelector(one));
const say = (text) => {
  told.textContent = text;
};

async function access() {
  const response = await fetch("access.json");
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/** Sends the microphone to the box until it has an answer. */
async function check(name) {
  const { url } = await access();
  const voices = connectVoiceprints({ url, token: async () => (await access()).token });
  let [microphone, listening, sending] = [null, null, Promise.resolve()];
  try {
    return await new Promise((resolve, reject) => {
      const heard = (samples, _levelDb, rateHz) => {
        listening ??= voices.listen({ persons: [name] }, rateHz);
        const send = async () => {
          const answer = await (await listening).push(samples);
          if (answer) resolve(answer);
        };
        sending = sending.then(send).catch(reject);
      };
      const lost = () => reject(new Error("The microphone was disconnected."));
      openMicrophone({ heard, lost }).then((opened) => {
        microphone = opened;
        say("Speak now.");
      }, reject);
    });
  } finally {
    await microphone?.close();
    await listening?.then((listener) => listener.close()).catch(() => {});
    await voices.close();
  }
}

speak.onclick = async () => {
  speak.disabled = true;
  try {
    const { decision, reason, ratio, threshold } = await check(person.value);
    say(ratio === null ? `${decision}: ${reason}` : `${decision}: ${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}`);
  } catch (error) {
    // Messages of errors are sentences that can be shown to people.
    say(error.message);
  } finally {
    speak.disabled = false;
  }
};
