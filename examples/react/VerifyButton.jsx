// A button that records, and says whether the speaker is the person. Everything happens in this browser: npm install react vivavoce
import { useRef, useState } from "react";
import { openIndexedDbStore, openVoiceprints } from "vivavoce";
import { startRecording } from "vivavoce/microphone";

let opened;
/** At the first recording, because a server that renders this button has no IndexedDB. */
const voices = () => (opened ??= openIndexedDbStore("voices").then((store) => openVoiceprints({ store })));
const trouble = { muted: "Your microphone is muted.", silent: "Hardly any sound is coming in.", sound: "Speak now." };

export function VerifyButton({ person, onAnswer }) {
  const recorder = useRef(null);
  const busy = useRef(false);
  const [text, setText] = useState("Record");
  const [level, setLevel] = useState(0);

  async function press() {
    if (busy.current) return; // a double click would open the microphone twice
    busy.current = true;
    try {
      if (recorder.current) {
        const { stop } = recorder.current;
        recorder.current = null;
        setText("Listening…");
        const audio = await stop();
        const { decision, reason, ratio, threshold } = await (await voices()).verify(person, audio);
        setText(ratio === null ? reason : `${decision}: ${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}`);
        onAnswer?.(decision);
      } else {
        voices().catch(() => {}); // loads the model while the person speaks; an error is shown by the check
        recorder.current = await startRecording({
          level: (levelDb) => setLevel(Math.max(0, 1 + levelDb / 60)),
          state: (state) => setText(trouble[state]),
          lost: () => setText("The microphone was disconnected."),
        });
        setText(trouble.sound);
      }
    } catch (error) {
      setText(error.message);
    } finally {
      busy.current = false;
    }
  }

  return (
    <button type="button" onClick={press}>
      {text} <meter value={level} />
    </button>
  );
}
