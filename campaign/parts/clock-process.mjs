// Opens a store and its token service, with whatever clock it is started with: the right secret is accepted, guesses are delayed, earlier data can be
// read, and new data is stored. Prints what it saw as one line of JSON, and waits to be killed.
//   node --import ./clock-shift.mjs clock-process.mjs <folder> <name of this stage> [<client and earlier token, as printed before>]
import { openEmbeddedStore } from "../../dist/postgres.js";
import { createTokenService } from "../../dist/token/service.js";
import { createVerifier } from "../../dist/token/verify.js";
import { clientOf, runtimeToken } from "./bank.mjs";
import { profileOf, SCOPE, startSession } from "./records.mjs";

const [folder, stage, before = "null"] = process.argv.slice(2);
const GUESSES = 9;

const store = await openEmbeddedStore(folder);
const tokens = createTokenService({ documents: store.documents, issuer: "http://127.0.0.1:8080" });
const verifier = createVerifier({ issuers: [tokens.runtimeIssuer] });
const earlier = JSON.parse(before);
const { id, secret } = earlier?.client ?? (await clientOf(tokens, SCOPE));

let longestWaitSeconds = 0;
for (let guess = 0; guess < GUESSES; guess++) {
  const wrong = { client: { clientId: id, secret: `guess-${guess}` }, scope: "bio", address: "192.0.2.7" };
  const error = await tokens.clientCredentials(wrong).then(
    () => null,
    (reason) => reason,
  );
  if (!error) throw new Error("a guess got in");
  longestWaitSeconds = Math.max(longestWaitSeconds, Number(error.headers?.["Retry-After"] ?? 0));
}
const token = await runtimeToken(tokens, { id, secret });
await verifier.verify(token, "bio");
const earlierToken = earlier?.token
  ? await verifier.verify(earlier.token, "bio").then(
      () => "accepted",
      () => "refused",
    )
  : null;
const people = (await store.profiles.list(SCOPE, null, 1000)).map(({ owner }) => owner.externalId);
await startSession(store, `session-${stage}`);
await store.profiles.create(profileOf(`profile-${stage}`, stage));
process.stdout.write(
  `${JSON.stringify({ client: { id, secret }, token, earlierToken, people, longestWaitSeconds, at: Date.now() })}\n`,
);
setInterval(() => {}, 1000);
