import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { secondsOf } from "../contract/duration.js";
import { messagesOf, stackOf } from "../contract/error-causes.js";
import {
  type Context,
  Decision,
  type ListenRequest,
  type ListenResponse,
  type ListenStart,
  LiveProcessor,
  StatusCode,
  type StatusError,
} from "../contract/index.js";
import { orAborted } from "../contract/on-abort.js";
import { type LiveOperations, type Operations, operationOf } from "../contract/operations.js";
import type { CallRates } from "../token/call-rates.js";
import { AUDIO_OPERATIONS } from "./audio-operations.js";
import { asStatusError, fromSender } from "./call-errors.js";
import type { Caller, Guard } from "./guard.js";
import type { LiveCallEntry, LiveCalls } from "./limits/live-calls.js";
import type { UploadBudget } from "./limits/upload-budget.js";
import type { Asker, WorkQueue } from "./limits/work-queue.js";
import { type LiveLimits, LiveRequests } from "./live-requests.js";
import { type Log, limitedLog } from "./log.js";
import type { Protocol, ServerMetrics } from "./metrics.js";
import { busy, Refusal, tooLarge } from "./refusal.js";

/** One call as a transport passes it on. */
export interface Call {
  readonly protocol: Protocol;
  readonly authorization: string | null;
  /** Network address of the caller. */
  readonly address: string;
  readonly requestId: string;
  /** Set if the transport has authenticated the caller itself; rejects if the caller is refused. */
  readonly caller?: Caller | Promise<Caller>;
  /**
   * Aborted with a refusal: by the transport when the caller disconnects or its deadline passes, by the dispatcher when
   * time runs out.
   */
  readonly ended: AbortController;
  /** Called if nothing arrives for too long in a live call. By default the call is aborted. */
  readonly onIdle?: () => void;
}

/** What is known of a call that its transport refuses: the caller is not admitted, or the message cannot be read. */
type RefusedCall = Pick<Call, "protocol" | "address" | "requestId">;

export interface DispatchLimits extends LiveLimits {
  readonly callSeconds: number;
  readonly mediaBytes: number;
  readonly mediaIdleSeconds: number;
  readonly mediaReadSeconds: number;
  readonly liveSilenceSeconds: number;
}

export interface DispatchParts {
  readonly operations: Operations & LiveOperations;
  readonly guard: Guard;
  readonly queue: WorkQueue;
  readonly rates: CallRates;
  readonly uploads: UploadBudget;
  readonly liveCalls: LiveCalls;
  readonly metrics: ServerMetrics;
  readonly log: Log;
  readonly limits: DispatchLimits;
}

interface MediaMessage extends Message {
  readonly chunk: Uint8Array;
}

const LISTEN: DescMethod = LiveProcessor.method.listen;
const LEAST_MESSAGE_BYTES = 64;
const LOOK_AT_REVOCATIONS_EVERY_MS = 1000;

/** What the results of operations have that is measured. */
interface Measured {
  readonly decision?: Decision;
  readonly audioDetails?: { readonly grossAudio?: Duration };
}

interface Timing {
  /** When the request was complete; for a recording, when it began. */
  startedAt: number;
  queuedSeconds: number;
  workedSeconds: number;
  bytes: number;
  /** Bytes taken from the upload budget. */
  charged: number;
  /** Who calls, once it is known. */
  client: string | null;
}

/** Refusals that an operator must understand. Their reasons are ours or the system's, and contain nothing that a caller sent. */
const EXPLAINED: ReadonlySet<StatusCode> = new Set([
  StatusCode.NOT_AUTHORIZED,
  StatusCode.BUSY,
  StatusCode.RATE_EXCEEDED,
  StatusCode.DEADLINE_EXCEEDED,
]);

/**
 * The single path from every transport to the operations: authentication, rate limit, scope, queue and time limit.
 * Every error comes out as a `StatusError` with the request id.
 */
export class Dispatcher {
  #running = 0;
  #stopping = false;
  #whenIdle: (() => void) | null = null;
  /** Refuse the calls whose message has not arrived. */
  readonly #reading = new Set<(reason: Refusal) => void>();

  readonly #limitedLog: Log;

  constructor(private readonly parts: DispatchParts) {
    this.#limitedLog = limitedLog(parts.log);
  }

  get running(): number {
    return this.#running;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  /**
   * Takes no new calls; resolves when all accepted calls are answered. Live calls may continue for `liveSeconds`, then
   * return the results so far.
   */
  async stop(liveSeconds: number): Promise<void> {
    this.#stopping = true;
    for (const refuse of this.#reading) refuse(stopping());
    if (this.#running === 0) return;
    const timer = setTimeout(() => this.parts.liveCalls.endAll(), liveSeconds * 1000);
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
    clearTimeout(timer);
  }

  /** For a transport that admits the caller before it calls the operation, to which it passes the answer on. */
  admit(authorization: string | null, address: string): Promise<Caller> {
    return this.parts.guard.admit(authorization, address);
  }

  /** A unary call. Its message is read only after the caller is admitted. */
  unary(method: DescMethod, read: () => Promise<Message>, call: Call): Promise<Message> {
    return this.#observed(method, call, async (timing) => {
      const caller = await this.#admit(call, timing);
      const request = await this.reading(read, call.ended.signal);
      timing.startedAt = performance.now();
      checkScope(caller, request);
      return this.#timed(method, request, call, timing, this.parts.limits.callSeconds);
    });
  }

  /** Ends with the call, or when the server stops: a caller that never sends its message must not delay that. */
  reading<T>(read: () => Promise<T>, ended: AbortSignal): Promise<T> {
    const message = new Promise<T>((resolve, reject) => {
      if (this.#stopping) throw stopping();
      this.#reading.add(reject);
      read()
        .then(resolve, reject)
        .finally(() => this.#reading.delete(reject));
    });
    return orAborted(message, ended);
  }

  /** A recording in chunks; the first message has the context. */
  clientStream(method: DescMethod, messages: AsyncIterable<Message>, call: Call): Promise<Message> {
    return this.#observed(method, call, async (timing) => {
      const caller = await this.#admit(call, timing);
      const received = this.#received(messages as AsyncIterable<MediaMessage>, caller, call, timing);
      try {
        return await this.#timed(method, received, call, timing, this.parts.limits.mediaReadSeconds);
      } finally {
        this.parts.uploads.give(timing.charged);
        this.parts.metrics.uploaded(timing.bytes);
      }
    });
  }

  /** A live call: requests and responses in both directions as they come. */
  async *live(
    messages: AsyncIterable<Message>,
    call: Call,
    from: string = call.protocol,
  ): AsyncGenerator<ListenResponse> {
    const { operations } = this.parts;
    const observation = this.#observe(LISTEN, call);
    let entry = null as LiveCallEntry | null;
    let watch: NodeJS.Timeout | undefined;
    const refuse = (reason: Refusal) => call.ended.abort(reason);
    try {
      const caller = await this.#admit(call, observation.timing);
      watch = setInterval(() => endIfRevoked(caller, entry?.scope ?? "", call), LOOK_AT_REVOCATIONS_EVERY_MS);
      const requests = new LiveRequests(
        fromSender(messages as AsyncIterable<ListenRequest>),
        call.ended,
        this.parts.limits,
        (start) => {
          checkScope(caller, start);
          this.#reading.delete(refuse);
          entry ??= this.#enter(call, from, start, () => requests.endAudio());
        },
        call.onIdle,
      );
      if (this.#stopping) throw stopping();
      this.#reading.add(refuse);
      const silenceSeconds = this.parts.limits.liveSilenceSeconds;
      const options = { signal: call.ended.signal, requestId: call.requestId, silenceSeconds };
      try {
        for await (const response of operations.listen(requests.received(), options)) {
          entry?.observe(response);
          observation.answered(response);
          this.#measureLive(response);
          yield response;
        }
      } finally {
        observation.timing.bytes = requests.bytes;
      }
    } catch (error) {
      throw observation.failed(call.ended.signal.aborted ? call.ended.signal.reason : error);
    } finally {
      clearInterval(watch);
      this.#reading.delete(refuse);
      entry?.leave();
      observation.ended();
    }
  }

  /** Counts and logs a call that its transport refuses. Returns the error to send. */
  refused(call: RefusedCall, error: unknown, method: DescMethod = LISTEN, client: string | null = null): StatusError {
    const observation = this.#observe(method, call);
    observation.timing.client = client;
    const refused = observation.failed(error);
    observation.ended();
    return refused;
  }

  /** Counts a live call that its transport refused and logged. */
  countRefused(protocol: Protocol, code: StatusCode): void {
    this.parts.metrics.call(LISTEN.name, protocol, StatusCode[code] ?? "UNSPECIFIED", 0);
  }

  /** A call takes its place with its first message, which names the scope: before that, it would keep others out. */
  #enter(call: Call, from: string, start: ListenStart, onEnd: () => void): LiveCallEntry {
    const { liveCalls } = this.parts;
    const scope = start.context?.gkScopeId?.value ?? "";
    const full = liveCalls.fullFor(scope);
    if (full !== null) throw busy(`${full}; try again later`, 5);
    return liveCalls.enter(call.requestId, from, scope, start.parties[0]?.name ?? "", onEnd);
  }

  async #admit(call: Call, timing: Timing): Promise<Caller> {
    if (this.#stopping) throw stopping();
    const caller = await (call.caller ?? this.admit(call.authorization, call.address));
    timing.client = caller.id;
    const wait = this.parts.rates.take(caller.id);
    if (wait !== null)
      throw new Refusal(StatusCode.RATE_EXCEEDED, "too many calls from this client; try again later", {
        retryAfterSeconds: wait,
      });
    return caller;
  }

  /** The messages, checked against the limits on size, pauses and scope. */
  async *#received(
    messages: AsyncIterable<MediaMessage>,
    caller: Caller,
    { ended }: Call,
    timing: Timing,
  ): AsyncGenerator<MediaMessage> {
    const { limits, uploads } = this.parts;
    const pauses = endAtLongPause(ended, limits.mediaIdleSeconds);
    try {
      for await (const message of fromSender(messages)) {
        // The bytes of a call that was cut off are already returned: what its sender still sends would never be.
        ended.signal.throwIfAborted();
        pauses.received();
        checkScope(caller, message);
        // A message costs more than its bytes. Without this, an endless recording of empty messages would never be too
        // large.
        const charge = Math.max(message.chunk.length, LEAST_MESSAGE_BYTES);
        if (timing.charged + charge > limits.mediaBytes + LEAST_MESSAGE_BYTES)
          throw tooLarge("the recording", limits.mediaBytes);
        if (!uploads.take(charge)) throw busy("too many recordings are being uploaded; try again later", 1);
        timing.charged += charge;
        timing.bytes += message.chunk.length;
        yield message;
        pauses.waiting();
      }
    } finally {
      pauses.forget();
    }
  }

  /**
   * Runs the operation, through the queue if it processes audio, until it answers, time runs out or the caller
   * disconnects.
   */
  async #timed(
    method: DescMethod,
    request: unknown,
    call: Call,
    timing: Timing,
    limitSeconds: number,
  ): Promise<Message> {
    const { operations, queue } = this.parts;
    const { ended } = call;
    const timer = setTimeout(
      () => ended.abort(new Refusal(StatusCode.DEADLINE_EXCEEDED, `the operation took longer than ${limitSeconds} s`)),
      limitSeconds * 1000,
    );

    const work = async () => {
      const startedAt = performance.now();
      try {
        const operation = operationOf(operations, method);
        return await operation.call(operations, request, { signal: ended.signal, requestId: call.requestId });
      } finally {
        timing.workedSeconds = (performance.now() - startedAt) / 1000;
      }
    };
    const answer = AUDIO_OPERATIONS.has(method.name)
      ? queue.run(
          ended.signal,
          (queuedSeconds) => {
            timing.queuedSeconds = queuedSeconds;
            this.parts.metrics.queued(queuedSeconds);
            return work();
          },
          askerOf(request),
        )
      : work();
    try {
      return await orAborted(answer, ended.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Counts, measures and logs a call, and turns every error into a `StatusError`. */
  async #observed(method: DescMethod, call: Call, run: (timing: Timing) => Promise<Message>): Promise<Message> {
    const observation = this.#observe(method, call);
    try {
      const response = await run(observation.timing);
      stamp(response, call.requestId);
      observation.answered(response);
      this.#measure(method.name, response, observation.timing);
      return response;
    } catch (error) {
      throw observation.failed(error);
    } finally {
      observation.ended();
    }
  }

  #observe(method: DescMethod, call: RefusedCall) {
    const { metrics, log } = this.parts;
    const operation = method.name;
    const startedAt = performance.now();
    const timing: Timing = { startedAt, queuedSeconds: 0, workedSeconds: 0, bytes: 0, charged: 0, client: null };
    let status = "OK";
    let reason: string | undefined;
    this.#running++;
    return {
      timing,
      /** A message beside a result says what the result leaves out. */
      answered: (response: Message): void => {
        reason ||= (response as { status?: { message?: string } }).status?.message || undefined;
      },
      failed: (error: unknown): StatusError => {
        const refused = asStatusError(error);
        refused.status.requestId = call.requestId;
        status = StatusCode[refused.code] ?? "UNSPECIFIED";
        if (EXPLAINED.has(refused.code)) reason = messagesOf(refused);
        if (refused.code === StatusCode.INTERNAL_ERROR)
          log.error("an operation failed", { requestId: call.requestId, operation, stack: stackOf(error) });
        return refused;
      },
      ended: (): void => {
        this.#running--;
        const seconds = (performance.now() - timing.startedAt) / 1000;
        metrics.call(operation, call.protocol, status, seconds);
        const isFromAnybody = timing.client === null || status === "RATE_EXCEEDED";
        (isFromAnybody ? this.#limitedLog : log).info("call", {
          requestId: call.requestId,
          operation,
          protocol: call.protocol,
          ...(timing.client === null ? { address: call.address } : { client: timing.client }),
          status,
          ...(reason === undefined ? {} : { reason }),
          milliseconds: Math.round(seconds * 1000),
          ...(timing.queuedSeconds > 0 ? { queuedMilliseconds: Math.round(timing.queuedSeconds * 1000) } : {}),
          ...(timing.bytes > 0 ? { bytes: timing.bytes } : {}),
        });
        if (this.#running === 0) this.#whenIdle?.();
      },
    };
  }

  #measureLive({ event }: ListenResponse): void {
    if (event.case !== "result") return;
    const { result } = event.value;
    if (result.case === undefined || result.case === "enroll") return;
    this.parts.metrics.decision(LISTEN.name, Decision[result.value.decision] ?? String(result.value.decision));
  }

  #measure(operation: string, response: Message, timing: Timing): void {
    const { metrics } = this.parts;
    const { decision, audioDetails } = (response as { result?: Measured }).result ?? {};
    if (decision) metrics.decision(operation, Decision[decision] ?? String(decision));
    if (!AUDIO_OPERATIONS.has(operation)) return;
    const gross = audioDetails?.grossAudio;
    if (gross) metrics.audio(operation, secondsOf(gross), timing.workedSeconds);
  }
}

const stopping = () => busy("the box is stopping", 1);

/** A call may last hours, and its caller may be removed meanwhile. That its token expires does not end it. */
function endIfRevoked(caller: Caller, scope: string, { ended }: Call): void {
  caller.isRevoked?.(scope).then(
    (isRevoked) => isRevoked && ended.abort(new Refusal(StatusCode.NOT_AUTHORIZED, "the token was revoked")),
    // The store does not answer: asked again.
    () => {},
  );
}

function checkScope(caller: Caller, request: Message): void {
  const scope = (request as { context?: { gkScopeId?: { value?: string } } }).context?.gkScopeId?.value;
  // The operation itself reports a missing scope.
  if (!scope || caller.mayTouch(scope)) return;
  throw new Refusal(
    StatusCode.PERMISSION_DENIED,
    `the token does not include the scope "${scope.slice(0, 128)}"; bind its client to that scope`,
    { violation: { field: "context.gk_scope_id", violation: "forbidden" } },
  );
}

function stamp(response: Message, requestId: string): void {
  const { status } = response as { status?: { requestId: string } };
  if (status) status.requestId = requestId;
}

/** Ends a call whose sender pauses for too long. Counts only the time in which we wait for the sender. */
function endAtLongPause(ended: AbortController, seconds: number) {
  let isWaiting = true;
  const timer = setTimeout(() => {
    if (isWaiting) ended.abort(new Refusal(StatusCode.DEADLINE_EXCEEDED, `nothing was received for ${seconds} s`));
    else timer.refresh();
  }, seconds * 1000);
  return {
    received(): void {
      isWaiting = false;
    },
    waiting(): void {
      isWaiting = true;
      timer.refresh();
    },
    forget: () => clearTimeout(timer),
  };
}

const LONGEST_SESSION_ID = 36;

/** A retried call is recognized by its session. What is too long for a session's id is not remembered. */
function askerOf(request: unknown): Asker {
  const { context } = request as { readonly context?: Context };
  const scope = context?.gkScopeId?.value ?? "";
  const session = context?.gkSessionId?.value;
  return { scope, caller: session && session.length <= LONGEST_SESSION_ID ? `${scope} ${session}` : null };
}
