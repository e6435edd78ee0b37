// Cost of a call to a worker: Comlink with 10 s of transferred audio, compared with a bare message and with a copy.
import { Worker } from "node:worker_threads";
import * as Comlink from "comlink";
import { atMost, median } from "./measure.mjs";

const samples = 160_000;

const script = `
  import { parentPort } from "node:worker_threads";
  import * as Comlink from "comlink";
  parentPort.once("message", ({ port, bare }) => {
    Comlink.expose({ embed: (x) => { const out = new Float32Array(256).fill(x[0]); return Comlink.transfer(out, [out.buffer]); } }, port, [""]);
    bare.on("message", (x) => { const out = new Float32Array(256).fill(x[0]); bare.postMessage(out, [out.buffer]); });
  });`;

export default async function threads() {
  const worker = new Worker(
    new URL(
      `data:text/javascript,${encodeURIComponent(script.replaceAll('"comlink"', JSON.stringify(import.meta.resolve("comlink"))))}`,
    ),
  );
  const [a, b] = [new MessageChannel(), new MessageChannel()];
  worker.postMessage({ port: a.port2, bare: b.port2 }, [a.port2, b.port2]);
  const api = Comlink.wrap(a.port1);
  const answer = () => new Promise((resolve) => b.port1.once("message", resolve));
  const calls = {
    comlink: (x) => api.embed(Comlink.transfer(x, [x.buffer])),
    bare(x) {
      const answered = answer();
      b.port1.postMessage(x, [x.buffer]);
      return answered;
    },
    copied: (x) => api.embed(x),
  };
  const times = Object.fromEntries(Object.keys(calls).map((name) => [name, []]));
  for (let round = 0; round < 500; round++) {
    for (const [name, call] of Object.entries(calls)) {
      const x = new Float32Array(samples);
      const before = performance.now();
      await call(x);
      if (round >= 100) times[name].push(performance.now() - before);
    }
  }
  await worker.terminate();
  a.port1.close();
  b.port1.close();
  const us = (name) => 1000 * median(times[name]);
  const detail = `bare message ${us("bare").toFixed(0)} µs, copied ${us("copied").toFixed(0)} µs`;
  return [atMost("a call with 10 s of audio, moved", "Comlink", us("comlink") / 1000, 1, detail, " ms")];
}
