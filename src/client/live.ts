/** A live call to a box over WebSocket: audio in, typed events out. Runs in browsers and in Node. */
import { create, fromJson, type JsonValue, type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { secondsOf } from "../contract/duration.js";
import {
  ListenRequestSchema,
  type ListenResponse,
  ListenResponseSchema,
  type ListenStartSchema,
  StatusCode,
  StatusError,
  statusError,
} from "../contract/index.js";
import { type NamesOf, optionsFault } from "../contract/options-fault.js";
import { typeName } from "../type-name.js";
import { liveAddressOf } from "./address.js";
import { LONGEST_WAIT_SECONDS } from "./retry.js";

/** The `WebSocket` of browsers; in Node 20 that of the package `ws`. */
export type WebSocketClass = new (url: string, protocols: string[]) => LiveSocket;

/** What a live call needs of a WebSocket. */
export interface LiveSocket {
  binaryType: string;
  readonly bufferedAmount: number;
  // `never`, because each implementation has its own event types, and all of them must fit.
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  send(data: string | Uint8Array): void;
  close(): void;
}

/** Options of a live call: the box, what to check, and the handler of events. */
export interface LiveCallOptions {
  /** Address of the box: `https://voice.example.com:8080`. */
  readonly url: string | URL;
  /**
   * A token, or a function that gets one for each connection; leave it out if the box requires none. If the box refuses
   * a token, the function is called once more with it.
   */
  readonly token?: string | ((refused?: string) => Promise<string | null>);
  /** The session, the format of the audio, and what to check: the contract's `ListenStart`. */
  readonly start: MessageInitShape<typeof ListenStartSchema>;
  /**
   * Called with each event of the box, in order; the last ones carry the results. After a lost connection, progress begins again;
   * keys that were reported are not reported again.
   */
  readonly onEvent: (response: ListenResponse) => void;
  /** Needed if the runtime has none, such as Node 20: use that of the package `ws`. */
  readonly WebSocket?: WebSocketClass;
  /**
   * How often to reconnect after a lost connection or BUSY; by default 3 before the box has listened, then 6, which bridges a
   * restart of half a minute. All audio is sent again, so the result is the same.
   */
  readonly reconnects?: number;
  /** Size in bytes of the buffer for that, 4 MiB by default; a call that has sent more cannot reconnect. */
  readonly keptBytes?: number;
}

const optionNames: NamesOf<LiveCallOptions> = {
  url: true,
  token: true,
  start: true,
  onEvent: true,
  WebSocket: true,
  reconnects: true,
  keptBytes: true,
};

/** For callers without a type checker: these would be noticed when the connection is open, where nobody can catch the error. */
function checkOptions(options: LiveCallOptions): void {
  const fault = optionsFault(options, optionNames);
  if (fault !== null) throw new TypeError(fault);
  if (typeof options.start !== "object" || options.start === null)
    throw new TypeError(`start must be a ListenStart, got ${typeName(options.start)}`);
  if (typeof options.onEvent !== "function")
    throw new TypeError(`onEvent must be a function, got ${typeName(options.onEvent)}`);
}

const PROTOCOL = "vivavoce.live.v1";
const TRY_AGAIN_LATER = 1013;
const NORMAL = 1000;
const FIRST_PAUSE_SECONDS = 0.5;
/** The characters of a subprotocol (RFC 9110 §5.6.2); those of a JWT are among them. */
const IN_SUBPROTOCOL = /^[\w!#$%&'*+.^`|~-]+$/;

/** A live call that checks or enrolls somebody. It reconnects after a network failure or a restart of the box. */
export class LiveCall {
  /** Resolves when every party has its result; rejects with a `StatusError` when the call cannot go on. */
  readonly done: Promise<void>;
  readonly #address: string;
  #resolve: () => void = () => {};
  #reject: (error: StatusError) => void = () => {};
  #socket: LiveSocket | null = null;
  /** Not connected yet. */
  #opening: LiveSocket | null = null;
  #sent: (string | Uint8Array)[] = [];
  #keptBytes = 0;
  #isKept = true;
  #isOver = false;
  #attempts = 0;
  /** Whether the box has listened: an address that never answered may be wrong. */
  #hasStarted = false;
  #hasRenewed = false;
  /** Until the next attempt. */
  #pause: ReturnType<typeof setTimeout> | undefined;
  /** Keys reported so far. Each connection gets all audio, and so all keys, from the beginning. */
  #keys = 0;

  constructor(private readonly options: LiveCallOptions) {
    checkOptions(options);
    this.#address = liveAddressOf(options.url);
    this.done = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Callers that do not await `done` get the result from `onEvent`; an unhandled rejection must not end the program.
    this.done.catch(() => {});
    this.#send(jsonOf({ content: { case: "start", value: options.start } }));
    void this.#connect();
  }

  /** Bytes in the encoding of `start`. */
  push(audio: Uint8Array): void {
    if (!(audio instanceof Uint8Array)) throw new TypeError(`audio must be a Uint8Array, got ${typeName(audio)}`);
    this.#send(audio);
  }

  /** Reports a key press that the telephone system detected. */
  key(digit: string): void {
    this.#send(jsonOf({ content: { case: "dtmf", value: digit } }));
  }

  /** Ends the audio; the results follow as events. */
  end(): void {
    this.#send(jsonOf({ content: { case: "end", value: {} } }));
  }

  /** Ends the call without a result. */
  close(): void {
    this.#fail(statusError(StatusCode.CANCELLED, "the call was closed by this program"));
    (this.#socket ?? this.#opening)?.close();
  }

  #send(message: string | Uint8Array): void {
    if (this.#isOver) return;
    this.#keptBytes += message.length;
    if (this.#isKept) this.#sent.push(message);
    this.#socket?.send(message);
    this.#forgetTooMuch();
  }

  /** What has not been sent yet must be kept, however much it is. */
  #forgetTooMuch(): void {
    if (!this.#socket || this.#keptBytes <= (this.options.keptBytes ?? 4 * 1024 * 1024)) return;
    this.#isKept = false;
    this.#sent = [];
  }

  async #connect(refused?: { readonly token: string; readonly refusal: StatusError }): Promise<void> {
    const { token } = this.options;
    const address = this.#address;
    const Socket = this.options.WebSocket ?? (globalThis as { WebSocket?: WebSocketClass }).WebSocket;
    const unfit = (message: string, cause?: unknown) => this.#fail(statusError(StatusCode.BAD_REQUEST, message, cause));
    if (!Socket)
      return unfit("this runtime has no WebSocket; install the package ws and pass its WebSocket as an option");
    let bearer: string | null | undefined;
    try {
      bearer = typeof token === "function" ? await token(refused?.token) : token;
    } catch (error) {
      if (error instanceof StatusError && error.code === StatusCode.NOT_AUTHORIZED) return this.#fail(error);
      const refusal = error instanceof StatusError ? error : null;
      return this.#again(error instanceof Error ? error.message : String(error), refusal);
    }
    if (this.#isOver) return;
    // There is no other token: the box would refuse it again.
    if (refused && bearer === refused.token) return this.#fail(refused.refusal);
    // Checked here because a browser would repeat the token in its error.
    if (bearer && !IN_SUBPROTOCOL.test(bearer))
      return unfit("the token has characters that a WebSocket cannot send, such as / or =");
    let socket: LiveSocket;
    try {
      socket = new Socket(address, [PROTOCOL, ...(bearer ? [`bearer.${bearer}`] : [])]);
    } catch (error) {
      return unfit(`cannot connect to ${address}: ${error instanceof Error ? error.message : String(error)}`, error);
    }
    socket.binaryType = "arraybuffer";
    let refusal: StatusError | null = null;
    let keys = 0;
    let results = 0;
    this.#opening = socket;
    socket.onopen = () => {
      for (const message of this.#sent) socket.send(message);
      this.#socket = socket;
      this.#opening = null;
      this.#forgetTooMuch();
    };
    socket.onmessage = ({ data }: { data: unknown }) => {
      const response = fromJson(ListenResponseSchema, JSON.parse(String(data)) as JsonValue, {
        ignoreUnknownFields: true,
      });
      if (response.status && response.status.statusCode !== StatusCode.OK) {
        refusal = new StatusError(response.status);
        return;
      }
      if (response.event.case === "result") results++;
      if (response.event.case === "dtmf" && ++keys <= this.#keys) return;
      this.#keys = Math.max(this.#keys, keys);
      this.#hasStarted = true;
      this.options.onEvent(response);
    };
    socket.onerror = () => {};
    socket.onclose = ({ code }: { code: number }) => {
      this.#socket = null;
      this.#opening = null;
      // With all results there is nothing to connect for, even if the last frame was lost.
      if (code === NORMAL || (results > 0 && results === this.options.start.parties?.length)) this.#succeed();
      else if (bearer && refusal && this.#mayRenew(refusal)) void this.#connect({ token: bearer, refusal });
      else if (refusal && code !== TRY_AGAIN_LATER) this.#fail(refusal);
      else this.#again(refusal?.message ?? `the connection to ${address} was lost (code ${code})`, refusal);
    };
  }

  /** A token may end before it expires, for example because the scopes of its client were changed. */
  #mayRenew(refusal: StatusError): boolean {
    const mayRenew =
      refusal.code === StatusCode.NOT_AUTHORIZED && typeof this.options.token === "function" && !this.#hasRenewed;
    this.#hasRenewed ||= mayRenew;
    return mayRenew && !this.#isOver && this.#isKept;
  }

  /** Waits as long as the box asks, if it does and that is not too long. */
  #again(reason: string, refusal: StatusError | null = null): void {
    if (this.#isOver) return;
    const asked = refusal?.status.retryAfter ? secondsOf(refusal.status.retryAfter) : 0;
    const { reconnects = this.#hasStarted ? 6 : 3 } = this.options;
    if (!this.#isKept || this.#attempts >= reconnects || asked > LONGEST_WAIT_SECONDS) {
      this.#fail(refusal ?? statusError(StatusCode.BUSY, reason));
      return;
    }
    const grown = Math.min(FIRST_PAUSE_SECONDS * 2 ** this.#attempts, LONGEST_WAIT_SECONDS);
    this.#attempts++;
    this.#pause = setTimeout(() => void this.#connect(), 1000 * Math.max(grown, asked));
  }

  #succeed(): void {
    this.#isOver = true;
    this.#sent = [];
    this.#resolve();
  }

  #fail(error: StatusError): void {
    this.#isOver = true;
    clearTimeout(this.#pause);
    this.#sent = [];
    this.#reject(error);
  }
}

const jsonOf = (request: MessageInitShape<typeof ListenRequestSchema>): string =>
  JSON.stringify(toJson(ListenRequestSchema, create(ListenRequestSchema, request)));
