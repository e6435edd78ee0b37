// A desktop program without Electron: it serves a page to this machine only and opens it in a window of Chromium, Chrome or Edge.
//   npm install vivavoce, then node desktop.mjs
// Voices are kept in the folder VOICES (by default ~/.desktop-voices), and belong to the PORT (7423). BROWSER selects another browser.
import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { homedir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = (address) => fileURLToPath(new URL(".", address));
const places = {
  "": folder(import.meta.url),
  vivavoce: folder(import.meta.resolve("vivavoce/vivavoce.vvm")),
  microphone: folder(import.meta.resolve("vivavoce/microphone")),
};
const types = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" };
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'";

const server = createServer(async (request, response) => {
  // Serves only files of three folders: that of this program, and two of the package.
  const [known, place = "", name = "index.html"] =
    /^\/(?:(vivavoce|microphone)\/)?([\w-]+\.(?:html|js|wasm|vvm))?$/.exec(request.url) ?? [];
  const file = join(places[place], name);
  const found = known && (await stat(file).catch(() => null));
  if (!found) {
    response.writeHead(404).end();
    return;
  }
  const type = types[extname(file)] ?? "application/octet-stream";
  response.writeHead(200, { "content-type": type, "content-length": found.size, "content-security-policy": policy });
  createReadStream(file).pipe(response);
});

server.listen(Number(process.env.PORT ?? 7423), "127.0.0.1", () => {
  const url = `http://127.0.0.1:${server.address().port}/`;
  console.log(url);
  const voices = process.env.VOICES ?? join(homedir(), ".desktop-voices");
  const browsers = [process.env.BROWSER, "chromium", "google-chrome", "microsoft-edge"].filter(Boolean);
  open(browsers, [`--app=${url}`, `--user-data-dir=${voices}`, "--no-first-run"]);
});

/** Opens the first browser that is installed. The program ends when its window is closed. */
function open([browser, ...others], args) {
  if (browser === undefined) {
    console.error("no browser found; set BROWSER to the command that starts yours, or open the address above");
    return;
  }
  const window = spawn(browser, args, { stdio: "ignore" });
  window.once("error", () => open(others, args));
  window.once("exit", () => server.close());
  process.once("SIGTERM", () => window.kill());
}
