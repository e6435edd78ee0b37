// Serves the page of this folder and gets its tokens; the client's secret never reaches the browser.
//   npm install vivavoce vivavoce-box esbuild        (in a checkout of vivavoce instead: npm ci && npm run build)
//   npx vivavoce enroll ada one.wav two.wav three.wav
//   npx vivavoce serve --set 'cors.origins=["http://127.0.0.1:7424"]'
//   VIVAVOCE_CLIENT_ID=… VIVAVOCE_CLIENT_SECRET=… node serve.mjs
// The box prints client id and secret at its first start. VIVAVOCE_URL is its address (http://127.0.0.1:8080), PORT that of the page (7424).
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { createTokenCache } from "vivavoce/client";

const {
  VIVAVOCE_URL: url = "http://127.0.0.1:8080",
  VIVAVOCE_CLIENT_ID: clientId,
  VIVAVOCE_CLIENT_SECRET: clientSecret,
  PORT = "7424",
} = process.env;
if (!clientId || !clientSecret) throw new Error("set VIVAVOCE_CLIENT_ID and VIVAVOCE_CLIENT_SECRET, which the box printed at its first start");
const tokens = createTokenCache({ tokenUrl: `${url}/oauth2/token`, clientId, clientSecret, scope: "bio" });

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const { outputFiles } = await build({ entryPoints: [here("page.js")], bundle: true, format: "esm", write: false });
const script = { "content-type": "text/javascript" };
const worklet = fileURLToPath(new URL("capture-worklet.js", import.meta.resolve("vivavoce/microphone")));
const pages = {
  "/": () => [{ "content-type": "text/html" }, readFileSync(here("index.html"))],
  "/page.js": () => [script, outputFiles[0].contents],
  "/capture-worklet.js": () => [script, readFileSync(worklet)],
  // Your own server checks here who is signed in.
  "/access.json": async () => [{ "content-type": "application/json" }, JSON.stringify({ url, token: await tokens.token() })],
};

const server = createServer(async (request, response) => {
  try {
    const [headers, body] = (await pages[request.url]?.()) ?? [];
    response.writeHead(body ? 200 : 404, headers).end(body);
  } catch (error) {
    response.writeHead(502, { "content-type": "text/plain" }).end(error.message);
  }
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
