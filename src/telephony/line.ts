/** A line: one way into the box for calls of one telephone system, and what is done with them. Settings, validated before anything opens. */
import { z } from "zod";
import { rtpFormats } from "./rtp/rtp.js";

/** `{from}` stands for the call's field of that name. */
const template = z.string().max(256);
const port = z.number().int().min(0).max(65_535);
const seconds = z.number().positive().max(86_400);

const shared = {
  /** In addresses, logs and the operator view. */
  name: z.string().regex(/^[a-z0-9-]{1,32}$/, "must be lower-case letters, digits and hyphens"),
  /** The biometric scope (`gk_scope_id`) that its calls belong to. */
  scope: z.string().min(1),
  configset: z.string().min(1).default("text-independent"),
  /** External ids of engagement and session. */
  engagement: template.default("{callId}"),
  session: template.default("{callId}"),
  /** External id of the claimed person; empty for no claim. */
  claimedPerson: template.default("{from}"),
  /** Of two channels, the one with the caller. */
  callerChannel: z.number().int().min(1).max(2).default(1),
  /** External id of the agent, who is verified in the other channel; empty leaves the agent out. */
  agent: template.default(""),
  /** One channel has both in it: they are told apart by voice, and the caller alone is checked. */
  separateVoices: z.boolean().default(false),
  /** What becomes of somebody who has no print yet. */
  unknownCaller: z.enum(["enroll", "ignore"]).default("ignore"),
  /** Id of a watchlist whose fraudsters every caller is compared with. */
  watchlist: z.string().min(1).optional(),
  syntheticSpeech: z.boolean().default(false),
  playback: z.boolean().default(false),
  /** After the result: stay in the call and say nothing more, or leave it so that its program goes on. */
  onResult: z.enum(["stay", "leave"]).default("stay"),
  webhook: z
    .strictObject({
      url: z.url({ protocol: /^https?$/ }),
      /** Signs every request: HMAC-SHA256 over time and body. */
      secret: z.string().min(16),
      timeoutSeconds: seconds.default(5),
      attempts: z.number().int().min(1).max(10).default(4),
      /** Also before the result: checkpoints and keys. */
      everything: z.boolean().default(false),
    })
    .optional(),
};

const basic = { user: z.string().min(1), password: z.string().min(8) };

export const lineSchema = z.discriminatedUnion("dialect", [
  z.strictObject({
    ...shared,
    dialect: z.literal("audiosocket"),
    host: z.string().min(1).default("127.0.0.1"),
    port: port.default(9092),
    /** An announced call that does not come in is forgotten. */
    announcedSeconds: seconds.default(60),
  }),
  z.strictObject({
    ...shared,
    dialect: z.literal("rtp"),
    host: z.string().min(1).default("127.0.0.1"),
    /** Ports that calls are given one of each. */
    ports: z.tuple([port, port]).default([20_000, 20_999]),
    format: z.enum(rtpFormats as [string, ...string[]]).default("ulaw"),
    announcedSeconds: seconds.default(60),
  }),
  z.strictObject({ ...shared, dialect: z.literal("asterisk-websocket"), ...basic }),
  z.strictObject({
    ...shared,
    dialect: z.literal("twilio"),
    /** The account's auth token, which Twilio signs with. */
    authToken: z.string().min(16),
  }),
  z.strictObject({ ...shared, dialect: z.literal("jambonz"), ...basic }),
  z.strictObject({
    ...shared,
    dialect: z.literal("freeswitch"),
    ...basic,
    rate: z.number().int().min(8_000).max(48_000).default(8_000),
    channels: z.union([z.literal(1), z.literal(2)]).default(1),
  }),
  z.strictObject({
    ...shared,
    dialect: z.literal("audiohook"),
    apiKey: z.string().min(8),
    /** As the administrator of Genesys Cloud gave it, base64. */
    clientSecret: z.base64().min(16),
  }),
]);

export type Line = z.output<typeof lineSchema>;
export type LineOf<D extends Line["dialect"]> = Extract<Line, { dialect: D }>;

/** Where a line's WebSocket and its announcements are. */
export const pathOf = (line: Pick<Line, "name">): string => `/telephony/${line.name}`;

/** The template with the call's fields; a field that is not there is empty. */
export function filled(text: string, fields: Readonly<Record<string, string>>): string {
  return text.replace(/\{([^{}]+)\}/g, (_, name: string) => (Object.hasOwn(fields, name) ? fields[name]! : ""));
}
