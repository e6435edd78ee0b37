/** The script of a worker: loads kernels and model once, then answers one call at a time. */
import * as Comlink from "comlink";
import { outcomeOf } from "./outcome.js";
import { firstMessage } from "./platform.js";
import { openThreadWork } from "./thread-work.js";
import { buffersIn, portOrigin, type WorkerApi, type WorkerSetup } from "./worker-api.js";

// Not awaited at the top level of the module: bundlers turn a worker into a classic script, which cannot do that.
void firstMessage().then((message) => {
  const { port, module, model } = message as WorkerSetup;
  const loaded = outcomeOf(() => openThreadWork(module, model));
  const { port1: nowhere } = new MessageChannel();
  nowhere.close();

  const api: WorkerApi = {
    ready: () => (loaded.ok ? { ok: true, value: true } : loaded),
    call(name, values) {
      if (!loaded.ok) return loaded;
      const work = loaded.value;
      const outcome = outcomeOf(() =>
        (work[name] as (...values: readonly unknown[]) => unknown).apply(work, [...values]),
      );
      const moved = buffersIn(outcome);
      // The input is this thread's own copy. An idle thread collects no garbage, so voice data would stay in memory; even in a busy thread,
      // a thousand calls leave a hundred megabytes until it is collected. What is moved to a closed port is freed at once.
      const left = [...buffersIn(values)].filter((buffer) => !moved.has(buffer));
      for (const buffer of left) new Uint8Array(buffer).fill(0);
      nowhere.postMessage(null, left);
      return Comlink.transfer(outcome, [...moved]);
    },
  };

  Comlink.expose(api, port, [portOrigin]);
});
