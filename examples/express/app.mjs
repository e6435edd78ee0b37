// An Express application that enrolls and checks voices. Run `npm install express vivavoce`, then node app.mjs
//   curl --data-binary @ada-1.wav -H 'content-type: audio/wav' http://127.0.0.1:3000/people/ada      (three times)
//   curl --data-binary @ada-4.wav -H 'content-type: audio/wav' http://127.0.0.1:3000/people/ada/check
import express from "express";
import { openVoiceprints, StatusCode, StatusError } from "vivavoce";

const voice = await openVoiceprints(); // in memory; give it a store to keep voices
const app = express();
const recording = express.raw({ type: ["audio/wav", "application/octet-stream"], limit: "16mb" });

app.post("/people/:name", recording, async ({ params, body }, response) => {
  const { trained, missingRecordings, missingSpeechSeconds, segments } = await voice.enroll(params.name, [body]);
  response.json({ trained, missingRecordings, missingSpeechSeconds, validity: segments[0].validity });
});

app.post("/people/:name/check", recording, async ({ params, body }, response) => {
  const { decision, reason, ratio, threshold } = await voice.verify(params.name, body);
  response.json({ decision, reason, ratio, threshold });
});

app.delete("/people/:name", async ({ params }, response) => {
  response.status((await voice.erase(params.name)) ? 204 : 404).end();
});

const httpStatus = { NOT_FOUND: 404, TOO_LARGE: 413, INTERNAL_ERROR: 500, BUSY: 503, DEADLINE_EXCEEDED: 504 };

// The message of a StatusError can be shown to the caller; any other error is a defect of this program.
app.use((error, _request, response, next) => {
  if (!(error instanceof StatusError)) return next(error);
  const code = StatusCode[error.code];
  response.status(httpStatus[code] ?? 400).json({ code, message: error.message });
});

const server = app.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once("SIGTERM", () => server.close(() => voice.close()));
