/** Live audio of `Voiceprints`, processed by a box: each check or enrollment is a `LiveCall`. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type ListenPartySchema, type ListenResult, StatusCode, statusError } from "../contract/index.js";
import { onAbort } from "../contract/on-abort.js";
import type { OperationOptions } from "../contract/operations.js";
import type { ListenerTask, LiveAccess } from "../voiceprints.js";
import { endedCall } from "./ended-call.js";
import { LiveCall, type LiveCallOptions, type WebSocketClass } from "./live.js";

type Party = MessageInitShape<typeof ListenPartySchema>;
type Results = ListenResult["result"];

export function boxLiveAccess(
  url: LiveCallOptions["url"],
  token: LiveCallOptions["token"] & object,
  WebSocket: WebSocketClass | undefined,
): LiveAccess {
  const open = async <Result>(
    request: { readonly context?: LiveCallOptions["start"]["context"]; readonly rateHz: number },
    party: Party,
    resultOf: (result: Results) => Result | null,
    { signal }: OperationOptions,
  ) => {
    const start = { context: request.context, encoding: "float32", rate: request.rateHz, parties: [party] };
    const call = (onEvent: LiveCallOptions["onEvent"]) =>
      new LiveCall({ url, token, start, onEvent, ...(WebSocket && { WebSocket }) });
    const task = new BoxTask(call, resultOf);
    if (signal) {
      const forget = task.endWith(signal);
      task.done.then(forget, forget);
    }
    await task.started;
    return task;
  };
  return {
    async listen(request, options) {
      const { context: _, rateHz: __, ignoreCheckpoints = false, ...asked } = request;
      const party = { ignoreCheckpoints, task: { case: "analyze", value: asked } } as const;
      return open(request, party, (found) => (found.case === "analyze" ? found.value : null), options);
    },
    async listenToEnroll(request, options) {
      const { gkVoiceprintProfileId } = request;
      const party = { task: { case: "enroll", value: { gkVoiceprintProfileId } } } as const;
      return open(request, party, (found) => (found.case === "enroll" ? found : null), options);
    },
    // Those of `Listen`.
    rates: [8_000, 48_000],
    // Nothing to close here: each call is closed by its own task.
    close: async () => {},
  };
}

/** A task of one party, on its own call. */
class BoxTask<Result> implements ListenerTask<Result> {
  /** Known when the box is listening. */
  notCompared = "";
  #result: Result | null = null;
  /** Resolves when the box is listening; rejects with the reason if it refuses. */
  readonly started: Promise<void>;
  /** Resolves when the call has ended; rejects with the reason if it failed. */
  readonly done: Promise<void>;
  readonly #call: LiveCall;
  #failure: unknown = null;

  constructor(call: (onEvent: LiveCallOptions["onEvent"]) => LiveCall, resultOf: (result: Results) => Result | null) {
    let start = () => {};
    const answered = new Promise<void>((resolve) => {
      start = resolve;
    });
    this.#call = call(({ event, status }) => {
      if (event.case === "started") {
        this.notCompared = status?.message ?? "";
        start();
      } else if (event.case === "result") this.#result = resultOf(event.value.result);
    });
    this.done = this.#call.done.catch((error: unknown) => {
      this.#failure ??= error;
      throw this.#failure;
    });
    this.started = Promise.race([answered, this.done]);
  }

  /** Ends the call when the signal aborts, with the reason of the signal. Call the returned function to stop waiting for it. */
  endWith(signal: AbortSignal): () => void {
    const end = () => {
      this.#failure ??= endedCall(signal.reason);
      this.#call.close();
    };
    if (signal.aborted) end();
    return onAbort(signal, end);
  }

  async push(samples: Float32Array): Promise<Result | null> {
    if (this.#failure) throw this.#failure;
    if (!this.#result) this.#call.push(littleEndian(samples));
    return this.#result;
  }

  async finish(): Promise<Result> {
    this.#call.end();
    await this.done;
    if (this.#result !== null) return this.#result;
    throw statusError(StatusCode.INTERNAL_ERROR, "the box ended the call without a result");
  }

  async close(): Promise<void> {
    this.#call.close();
  }
}

function littleEndian(samples: Float32Array): Uint8Array {
  const view = new DataView(new ArrayBuffer(4 * samples.length));
  for (const [i, sample] of samples.entries()) view.setFloat32(4 * i, sample, true);
  return new Uint8Array(view.buffer);
}
