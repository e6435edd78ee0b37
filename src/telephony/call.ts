/**
 * One call on a line: reads its frames, opens and stops its session, and delivers the results to the dialect and the
 * webhook.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  ConsentState,
  type ListenPartySchema,
  type ListenRequest,
  ListenRequestSchema,
  OwnerType,
  SessionType,
  StatusCode,
  StatusError,
  statusError,
} from "../contract/index.js";
import { LiveMessages } from "../server/live-messages.js";
import { findOrCreateProfile, findProfile, type Owner } from "../workflow.js";
import type { Exchange, TelephonyLog } from "./exchange.js";
import { filled, type Line } from "./line.js";
import { lineMessageOf, type SessionContext } from "./line-message.js";
import {
  type CallEvent,
  type CallFields,
  type CallFormat,
  DialectError,
  type DialectSession,
  type Frame,
  KEYS,
} from "./port.js";
import type { Webhook } from "./webhook.js";

/** The connection of a call. */
export interface CallSocket {
  send(frame: Frame): void;
  /** `isBusy`: a later attempt may succeed. */
  close(isBusy: boolean): void;
  /** `null` if the sender cannot be paused, as with UDP. */
  readonly flow: { pause(): void; resume(): void } | null;
}

export interface CallParts {
  readonly line: Line;
  readonly exchange: Exchange;
  readonly webhook: Webhook;
  readonly log: TelephonyLog;
}

const WAITING_MESSAGES = 256;
/** How long to wait for a peer that closes the connection itself. */
const PEER_CLOSES_MS = 5000;

type Party = MessageInitShape<typeof ListenPartySchema>;
type ProfileId = { value: string };

export class Call {
  readonly #requests: LiveMessages;
  readonly #ended = new AbortController();
  #phase: "waiting" | "open" | "over" = "waiting";
  #isClosed = false;
  #isListening = false;
  /** Why the call was refused. */
  #refused: StatusError | null = null;
  #hasFailed = false;
  /** The other side has sent nothing for too long. */
  #isSilent = false;
  #format: CallFormat | null = null;
  /** Known as soon as the call has started, and its session as soon as it is open. */
  #fields: CallFields | null = null;
  #context: SessionContext | null = null;
  #running: Promise<void> = Promise.resolve();
  #closing: NodeJS.Timeout | undefined;

  constructor(
    private readonly parts: CallParts,
    private readonly session: DialectSession,
    private readonly socket: CallSocket,
    /** The connection is closed and all work is done. */
    private readonly onOver: () => void,
  ) {
    this.#requests = new LiveMessages(WAITING_MESSAGES, socket.flow);
  }

  /** False as long as the other side has not said which call this is. */
  get hasStarted(): boolean {
    return this.#phase !== "waiting";
  }

  /** A frame from the connection. Whatever it contains, it ends at most this call. */
  receive(frame: Frame): void {
    try {
      const { events, replies } = this.session.receive(frame);
      for (const reply of replies) this.socket.send(reply);
      for (const event of events) this.#take(event);
    } catch (error) {
      if (!(error instanceof DialectError)) this.#fail(error);
      // A peer that goes on after the end of its call must not fill the log.
      else if (this.#phase !== "over") {
        this.parts.log.info("a call was refused", { line: this.parts.line.name, reason: error.message });
        this.#refuse(statusError(StatusCode.BAD_REQUEST, error.message));
      }
    }
  }

  /** The connection has closed, or never sent anything. Results so far still go to the session and the webhook. */
  hangUp(): void {
    this.#isClosed = true;
    clearTimeout(this.#closing);
    if (this.#phase === "waiting") this.#phase = "over";
    for (const event of this.session.hungUp()) this.#take(event);
    this.#requests.end();
    void this.#running.then(this.onOver);
  }

  /** The box stops: leaves the call after its result, even if the line is set to stay. */
  async leaveWhenOver(): Promise<void> {
    await this.#running;
    this.#leave();
  }

  #take(event: CallEvent): void {
    if (this.#phase === "over") return;
    if (event.kind === "start") {
      if (this.#phase !== "waiting") return;
      this.#phase = "open";
      this.#format = event.format;
      this.#fields = event.fields;
      this.#requests.expect(event.format);
      this.#running = this.#run(event.fields, event.format).catch((error: unknown) => this.#fail(error));
    } else if (event.kind === "end") {
      if (event.reason !== undefined)
        this.parts.log.warn("the rest of a call was not heard", { line: this.parts.line.name, reason: event.reason });
      this.#requests.end();
    } else if (event.kind === "key" && !isKey(event.digit)) return;
    else if (this.#format)
      this.#requests.push(create(ListenRequestSchema, { content: contentOf(event, this.#format) }));
  }

  async #run(fields: CallFields, format: CallFormat): Promise<void> {
    const { exchange, line, webhook } = this.parts;
    const context = await this.#openSession(fields);
    this.#context = context;
    try {
      const parties = await this.#parties(context, fields, format);
      if (parties.length === 0)
        throw statusError(StatusCode.NOT_FOUND, "the claimed person has no voiceprint and the line has no other check");
      const start = { context, encoding: format.encoding, rate: format.rate, channels: format.channels, parties };
      const requests = startedWith(
        create(ListenRequestSchema, { content: { case: "start", value: start } }),
        this.#requests,
      );
      this.#ended.signal.throwIfAborted();
      this.#isListening = true;
      for await (const response of exchange.listen(requests, this.#ended, () => this.#endSilent())) {
        if (response.event.case === "started") for (const frame of this.session.accepted()) this.socket.send(frame);
        const message = lineMessageOf(response, context);
        if (!message) continue;
        for (const frame of this.session.report(message)) this.socket.send(frame);
        webhook.send(fields, message);
      }
    } finally {
      this.#logDropped(format);
      await this.#stopEngagement(context);
    }
    this.#phase = "over";
    for (const frame of this.session.finished()) this.socket.send(frame);
    if (line.onResult === "leave" || this.#isSilent) this.#leave();
  }

  /** The result of what was heard so far must not be lost. */
  #endSilent(): void {
    if (this.#isSilent) return;
    this.#isSilent = true;
    this.parts.log.warn("a call ended: it sent nothing for limits.liveIdleSeconds", { line: this.parts.line.name });
    this.#requests.end();
  }

  #logDropped({ rate }: CallFormat): void {
    const { droppedSamples, droppedKeys } = this.#requests;
    const warn = (message: string, amount: string) =>
      this.parts.log.warn(message, {
        line: this.parts.line.name,
        reason: `${amount} came faster than the box could process them`,
      });
    if (droppedSamples > 0) warn("audio of a call was dropped", `${(droppedSamples / rate).toFixed(1)} s`);
    if (droppedKeys > 0) warn("keys of a call were dropped", String(droppedKeys));
  }

  #leave(): void {
    if (this.#isClosed) return;
    this.#phase = "over";
    for (const frame of this.session.leave()) this.socket.send(frame);
    this.#close(false);
  }

  #close(isBusy: boolean): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const close = () => this.socket.close(isBusy);
    if (this.session.isClosedByPeer) this.#closing = setTimeout(close, PEER_CLOSES_MS);
    else close();
  }

  async #openSession(fields: CallFields): Promise<SessionContext> {
    const { exchange, line } = this.parts;
    const scope = { gkScopeId: { value: line.scope } };
    const { gkEngagementId } = await exchange.startEngagement({
      context: scope,
      externalId: filled(line.engagement, fields),
    });
    const engaged = { ...scope, gkEngagementId: { value: gkEngagementId!.value } };
    const { gkSessionId } = await exchange
      .startSession({
        context: engaged,
        sessionType: SessionType.CALL_CENTER,
        externalId: filled(line.session, fields),
        claimedPersonId: filled(line.claimedPerson, fields),
      })
      .catch(async (error: unknown) => {
        // Refused, for example because the caller's number is too long for a name.
        await this.#stopEngagement(engaged);
        throw error;
      });
    return { ...engaged, gkSessionId: { value: gkSessionId!.value }, configsetId: line.configset };
  }

  /** That it fails must not hide the result of the call, or why it has none. Sessions that stay open expire. */
  async #stopEngagement(context: Pick<SessionContext, "gkScopeId" | "gkEngagementId">): Promise<void> {
    const { exchange, line, log } = this.parts;
    await exchange.stopEngagement({ context }).catch((error: unknown) => {
      // A program may have stopped the session of the call before it ended.
      if (error instanceof StatusError && error.code === StatusCode.INVALID_REQUEST) return;
      const reason = error instanceof StatusError ? reasonOf(error) : String(error);
      log.warn("the session of a call could not be stopped", { line: line.name, reason });
    });
  }

  /** The caller and, if known, the agent. */
  async #parties(context: SessionContext, fields: CallFields, { channels }: CallFormat): Promise<Party[]> {
    const { line } = this.parts;
    const person = filled(line.claimedPerson, fields);
    const agent = filled(line.agent, fields);
    const [profile, agentProfile] = [await this.#profileOf(person), await this.#profileOf(agent)];
    const channel = (selected: number) => ({ channelSelector: { channel: selected } });
    const isShared = channels === 1 && line.separateVoices;
    const hint = isShared && agentProfile ? await this.#usable(context, agent, agentProfile) : null;
    const voiceSeparation = hint ? { gkAgentVoiceprintProfileId: hint } : {};
    // A named agent without a print cannot be told from the caller, so the two voices are not separated.
    const separated = hint || agent === "" ? { channelSelector: { voiceSeparation } } : {};
    const selected = channels === 2 ? channel(line.callerChannel) : isShared ? separated : {};
    const task = profile || line.watchlist || line.syntheticSpeech || line.playback ? this.#check(profile) : null;
    const mayEnroll = person !== "" && line.unknownCaller === "enroll" && !isShared;
    const enrollment = mayEnroll ? await this.#enrollment(context, person, profile) : null;
    const caller = enrollment ?? task;
    // The session is about the caller. The agent's match must not decide it for a caller who is not compared.
    if (!caller && line.claimedPerson !== "") return [];
    return [
      ...(caller ? [{ name: "caller", ...selected, task: caller }] : []),
      ...(agentProfile && channels === 2
        ? [
            {
              name: "agent",
              ...channel(3 - line.callerChannel),
              task: { case: "verify", value: { gkVoiceprintProfileId: agentProfile } } as const,
            },
          ]
        : []),
    ];
  }

  #check(profile: ProfileId | null): Party["task"] {
    const { watchlist, syntheticSpeech, playback } = this.parts.line;
    if (profile && !watchlist && !syntheticSpeech && !playback)
      return { case: "verify", value: { gkVoiceprintProfileId: profile } };
    return {
      case: "analyze",
      value: {
        ...(profile && { gkVoiceprintProfileIds: { uniqueIds: [profile] } }),
        ...(watchlist !== undefined && { watchlist: { uniqueId: { value: watchlist } } }),
        ...(syntheticSpeech && { syntheticSpeechDetectionParameters: {} }),
        ...(playback && { channelPlaybackDetectionParameters: {} }),
      },
    };
  }

  /** `null` if the caller has a print. One that was never trained was left by a call that ended too early. */
  async #enrollment(context: SessionContext, person: string, known: ProfileId | null): Promise<Party["task"] | null> {
    if (known && (await this.#versionOf(context, person, known)) !== 0) return null;
    const { exchange, line } = this.parts;
    const value = known?.value ?? (await findOrCreateProfile(exchange, line.scope, personNamed(person)));
    return { case: "enroll", value: { gkVoiceprintProfileId: { value } } };
  }

  /** `null` without a name, or if the person has no profile. */
  async #profileOf(name: string): Promise<ProfileId | null> {
    const { exchange, line } = this.parts;
    const value = name === "" ? null : await findProfile(exchange, line.scope, personNamed(name));
    return value === null ? null : { value };
  }

  /** The agent's profile if its print can separate the voices of this call, otherwise `null`. */
  async #usable(context: SessionContext, agent: string, profile: ProfileId): Promise<ProfileId | null> {
    const { exchange, line, log } = this.parts;
    if (!(await this.#versionOf(context, agent, profile))) return null;
    if (await exchange.isOfScopesModel(line.scope, profile.value)) return profile;
    const reason = "it was made by another model; move it with vivavoce model migrate, or enroll the agent again";
    log.warn("the agent's voiceprint cannot separate the voices of a call", { line: line.name, reason });
    return null;
  }

  /** 0 until the print is trained; `null` if it is gone, or its consent withdrawn. */
  async #versionOf(context: SessionContext, person: string, { value }: ProfileId): Promise<number | null> {
    const wanted = { context, ownerType: OwnerType.PERSON, ownerId: person, pageSize: 500 };
    const { profiles } = await this.parts.exchange.listVoiceprintProfiles(wanted);
    const found = profiles.find(({ gkVoiceprintProfileId }) => gkVoiceprintProfileId?.value === value);
    return found && found.consent?.state !== ConsentState.WITHDRAWN ? found.printVersion : null;
  }

  #fail(error: unknown): void {
    const { log, line } = this.parts;
    // In the log already.
    if (error === this.#refused) return;
    if (error instanceof StatusError) {
      log.warn("a call ended with an error", { line: line.name, reason: reasonOf(error) });
      this.#refuse(error);
    } else {
      // A peer that goes on must not fill the log.
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      log.error("a call failed", {
        line: line.name,
        stack: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
      const message = "internal error; see the log of the box";
      this.#refuse(statusError(StatusCode.INTERNAL_ERROR, message, error));
    }
  }

  #refuse(error: StatusError): void {
    if (this.#phase === "over") return;
    this.#phase = "over";
    this.#refused = error;
    if (!this.#isListening) this.parts.exchange.refused(error.code);
    if (this.#fields)
      this.parts.webhook.send(this.#fields, {
        ...(this.#context && { context: this.#context }),
        type: "failed",
        status: StatusCode[error.code]!,
        reason: error.message,
      });
    this.#ended.abort(error);
    this.#requests.end();
    for (const frame of this.session.refuse(error)) this.socket.send(frame);
    this.#close(error.code === StatusCode.BUSY);
  }
}

const personNamed = (name: string): Owner => ({ kind: "person", name, tag: "" });

async function* startedWith(first: ListenRequest, rest: AsyncIterable<ListenRequest>): AsyncGenerator<ListenRequest> {
  yield first;
  yield* rest;
}

const reasonOf = (error: StatusError): string => `${StatusCode[error.code]}: ${error.message}`;

const isKey = (digit: string): boolean => digit.length === 1 && KEYS.includes(digit);

/** The byte for silence in each encoding. */
const SILENT_BYTE = { pcm16: 0, l16: 0, alaw: 0xd5, mulaw: 0xff } as const;
const LONGEST_SILENCE_SECONDS = 1;

function contentOf(
  event: Exclude<CallEvent, { kind: "start" | "end" }>,
  { encoding, rate, channels }: CallFormat,
): ListenRequest["content"] {
  switch (event.kind) {
    case "audio":
      return { case: "audio", value: event.bytes };
    case "lost":
      return { case: "lostSamples", value: Math.min(event.samples, 2 ** 31 - 1) };
    case "key":
      return { case: "dtmf", value: event.digit };
    case "silence": {
      const samples = Math.min(event.samples, LONGEST_SILENCE_SECONDS * rate) * channels;
      const bytes = new Uint8Array(encoding === "pcm16" || encoding === "l16" ? 2 * samples : samples);
      return { case: "audio", value: bytes.fill(SILENT_BYTE[encoding]) };
    }
  }
}
