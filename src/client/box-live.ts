/** The easy door's live audio, heard by a box: each check or enrollment is a `LiveCall`. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ListenPartySchema, ListenResult } from "../contract/gen/vendor/biosec/v1/live_pb.js";
import { StatusCode, StatusError } from "../contract/index.js";
import type { OperationOptions } from "../contract/operations.js";
import type { LiveAccess } from "../voiceprints.js";
import { secondsOf } from "../workflow.js";
import { type ConnectOptions, tokensOf } from "./connect.js";
import { LiveCall, type LiveCallOptions, type WebSocketClass } from "./live.js";

type Party = MessageInitShape<typeof ListenPartySchema>;
type Results = ListenResult["result"];

export function boxLiveAccess(connection: ConnectOptions, WebSocket: WebSocketClass | undefined): LiveAccess {
  const token = tokensOf(connection);
  const open = <Case extends Results["case"]>(
    request: { readonly context?: LiveCallOptions["start"]["context"]; readonly rateHz: number },
    party: Party,
    expected: Case,
    options: OperationOptions,
  ) =>
    new BoxTask(
      (onEvent) =>
        new LiveCall({
          url: connection.url,
          token,
          start: { context: request.context, encoding: "float32", rate: request.rateHz, parties: [party] },
          onEvent,
          ...(WebSocket && { WebSocket }),
        }),
      expected,
      options,
    );
  return {
    async listen(request, options) {
      const { context: _, rateHz: __, ignoreCheckpoints = false, ...asked } = request;
      const task = open(request, { ignoreCheckpoints, task: { case: "analyze", value: asked } }, "analyze", options);
      await task.started;
      return {
        push: async (samples) => {
          await task.push(samples);
          return { netSpeechSeconds: task.netSpeechSeconds, result: task.result };
        },
        finish: () => task.finish(),
        close: () => task.close(),
      };
    },
    async listenToEnroll(request, options) {
      const { gkVoiceprintProfileId } = request;
      const task = open(request, { task: { case: "enroll", value: { gkVoiceprintProfileId } } }, "enroll", options);
      await task.started;
      const asResult = (value: NonNullable<typeof task.result>) => ({ case: "enroll", value }) as const;
      return {
        push: async (samples) => {
          await task.push(samples);
          return task.result && asResult(task.result);
        },
        finish: async () => asResult(await task.finish()),
        close: () => task.close(),
      };
    },
    // Each call is closed by who opened it.
    close: async () => {},
  };
}

/** One party's task on a call of its own. */
class BoxTask<Case extends Results["case"]> {
  netSpeechSeconds = 0;
  result: Extract<Results, { case: Case }>["value"] | null = null;
  /** The box listens; rejects with why it does not. */
  readonly started: Promise<void>;
  readonly #call: LiveCall;
  #failure: unknown = null;

  constructor(
    call: (onEvent: LiveCallOptions["onEvent"]) => LiveCall,
    private readonly expected: Case,
    { signal }: OperationOptions,
  ) {
    let start = () => {};
    const heard = new Promise<void>((resolve) => {
      start = resolve;
    });
    this.#call = call(({ event }) => {
      if (event.case === "started") start();
      else if (event.case === "progress") this.netSpeechSeconds = secondsOf(event.value.netAudio);
      else if (event.case === "result") this.#take(event.value.result);
    });
    this.#call.done.catch((error: unknown) => {
      this.#failure = error;
    });
    this.started = Promise.race([heard, this.#call.done]);
    signal?.addEventListener("abort", () => this.#call.close(), { once: true });
  }

  async push(samples: Float32Array): Promise<void> {
    if (this.#failure) throw this.#failure;
    if (!this.result) this.#call.push(littleEndian(samples));
  }

  async finish(): Promise<Extract<Results, { case: Case }>["value"]> {
    this.#call.end();
    await this.#call.done;
    if (this.result) return this.result;
    throw new StatusError({
      statusCode: StatusCode.INTERNAL_ERROR,
      message: "the box ended the call without a result",
    });
  }

  async close(): Promise<void> {
    this.#call.close();
  }

  #take(result: Results): void {
    if (result.case === this.expected) this.result = result.value as typeof this.result;
  }
}

function littleEndian(samples: Float32Array): Uint8Array {
  const view = new DataView(new ArrayBuffer(4 * samples.length));
  for (const [i, sample] of samples.entries()) view.setFloat32(4 * i, sample, true);
  return new Uint8Array(view.buffer);
}
