// The one line that Next.js needs: a server has no microphone and no IndexedDB, so this is a client component.
"use client";
import { useEffect, useState } from "react";
import { openIndexedDbStore, openVoiceprints } from "vivavoce";

const person = "you";

export default function Page() {
  const [voices, setVoices] = useState(null);
  const [said, say] = useState("Loading the model…");

  useEffect(() => {
    const opening = openIndexedDbStore("next").then((store) => openVoiceprints({ store }));
    opening.then(async (opened) => {
      setVoices(opened);
      say((await opened.people()).includes(person) ? "You are enrolled here." : "Ready. Enroll three recordings.");
    }, (error) => say(error.message));
    return () => void opening.then((opened) => opened.close(), () => {});
  }, []);

  /** Messages of errors are sentences that can be shown to people. */
  const answering = (work) => async (event) => {
    say("Listening…");
    say(await work([...event.target.files]).catch((error) => error.message));
  };
  const enroll = answering(async (files) => {
    const { trained, missingRecordings } = await voices.enroll(person, files);
    return trained ? "You are enrolled." : `Not yet: ${missingRecordings} more recordings needed.`;
  });
  const check = answering(async ([file]) => {
    const { decision, reason, ratio, threshold } = await voices.verify(person, file);
    return ratio === null ? `${decision}: ${reason}` : `${decision}: ${ratio.toFixed(1)}, needed ${threshold.toFixed(1)}`;
  });

  return (
    <main>
      <p>
        <label>
          Recordings to enroll (three WAV files) <input id="enroll" type="file" accept="audio/wav" multiple disabled={!voices} onChange={enroll} />
        </label>
      </p>
      <p>
        <label>
          Recording to check <input id="check" type="file" accept="audio/wav" disabled={!voices} onChange={check} />
        </label>
      </p>
      <p role="status">{said}</p>
    </main>
  );
}
