// A button that records, and says whether it is the person. Everything happens in this browser: npm install react vivavoce
import { useRef, useState } from "react";
import { openIndexedDbStore, openVoiceprints } from "vivavoce";
import { startRecording } from "vivavoce/microphone";

const opened = openIndexedDbStore("voices").then((store) => openVoiceprints({ store }));
const trouble = { muted: "Your microphone is muted.", silent: "Hardly any sound arrives.", sound: "Speak now." };

export function VerifyButton({ person, onAnswer }) {
  const recorder = useRef(null);
  const [text, setText] = useState("Record");
  const [level, setLevel] = useState(0);

  async function press() {
    try {
      if (recorder.current) {
        const audio = await recorder.current.stop();
        recorder.current = null;
        const { decision, reason, ratio, threshold } = await (await opened).verify(person, audio);
        setText(ratio === null ? reason : `${decision}: ${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}`);
        onAnswer?.(decision);
      } else {
        recorder.current = await startRecording({
          level: (levelDb) => setLevel(Math.max(0, 1 + levelDb / 60)),
          state: (state) => setText(trouble[state]),
          lost: () => setText("The microphone went away."),
        });
        setText(trouble.sound);
      }
    } catch (error) {
      setText(error.message);
    }
  }

  return (
    <button type="button" onClick={press}>
      {text} <meter value={level} />
    </button>
  );
}
