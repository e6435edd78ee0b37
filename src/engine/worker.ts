/** The script of a worker: loads kernels and model once, then answers one call at a time. */
import * as Comlink from "comlink";
import { outcomeOf } from "./outcome.js";
import { firstMessage } from "./platform.js";
import { ThreadWork } from "./thread-work.js";
import { buffersIn, portOrigin, type WorkerApi, type WorkerSetup } from "./worker-api.js";

// Not awaited at the top of the module: bundlers make a classic script of a worker, which cannot.
void firstMessage().then((message) => {
  const { port, module, model } = message as WorkerSetup;
  const loaded = outcomeOf(() => new ThreadWork(module, model));

  const api: WorkerApi = {
    ready: () => (loaded.ok ? { ok: true, value: true } : loaded),
    call(name, values) {
      if (!loaded.ok) return loaded;
      const work = loaded.value;
      const outcome = outcomeOf(() =>
        (work[name] as (...values: readonly unknown[]) => unknown).apply(work, [...values]),
      );
      const moved = buffersIn(outcome);
      // What came is a copy of this thread's own. An idle thread collects no garbage: voices would lie there for as long.
      for (const buffer of buffersIn(values)) if (!moved.has(buffer)) new Uint8Array(buffer).fill(0);
      return Comlink.transfer(outcome, [...moved]);
    },
  };

  Comlink.expose(api, port, [portOrigin]);
});
