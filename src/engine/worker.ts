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
      return Comlink.transfer(outcome, [...buffersIn(outcome)]);
    },
  };

  Comlink.expose(api, port, [portOrigin]);
});
