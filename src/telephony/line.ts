/**
 * A line: an entry point for calls of one telephone system, and what the box does with them. Settings are validated
 * before anything is opened.
 */
import { z } from "zod";
import { isUuid, scopeName } from "../contract/mandatory.js";
import { rtpFormats } from "./rtp/rtp.js";

/** `{from}` is replaced by the call's field of that name. */
const template = z.string().max(256);
const port = z.number().int().min(0).max(65_535);
const seconds = z.number().positive().max(86_400);

/** `fetch` refuses such an address, and repeats it in its error. */
function hasUser(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username !== "" || password !== "";
}

const shared = {
  /** Used in URLs, logs and the operator view. */
  name: z.string().regex(/^[a-z0-9-]{1,32}$/, "must be lower-case letters, digits and hyphens"),
  /** The biometric scope (`gk_scope_id`) of its calls. */
  scope: z.string().regex(scopeName, "must be 1 to 128 characters without control characters"),
  configset: z.string().min(1).default("text-independent"),
  /** External ids of engagement and session. */
  engagement: template.default("{callId}"),
  session: template.default("{callId}"),
  /** External id of the claimed person; empty if there is no claim. */
  claimedPerson: template.default("{from}"),
  /** With two channels, the caller's channel. */
  callerChannel: z.number().int().min(1).max(2).default(1),
  /** External id of the agent, who is verified in the other channel; empty: the agent is not checked. */
  agent: template.default(""),
  /** Both people are in one channel: they are separated by voice, and only the caller is checked. */
  separateVoices: z.boolean().default(false),
  /** What to do with a caller who has no print yet. */
  unknownCaller: z.enum(["enroll", "ignore"]).default("ignore"),
  /** Id of a watchlist: every caller is compared with its fraudsters. */
  watchlist: z
    .string()
    .refine(isUuid, 'must be the id of a watchlist, as "vivavoce watchlist list" shows it')
    .optional(),
  syntheticSpeech: z.boolean().default(false),
  playback: z.boolean().default(false),
  /** After the result: stay in the call silently, or leave it so that the telephone system continues. */
  onResult: z.enum(["stay", "leave"]).default("stay"),
  webhook: z
    .strictObject({
      url: z
        .url({ protocol: /^https?$/ })
        .refine(
          (text) => !hasUser(text),
          "must have no user name and password; requests are signed with webhook.secret",
        ),
      /** Signs every request: HMAC-SHA256 of time and body. */
      secret: z.string().min(16),
      timeoutSeconds: seconds.default(5),
      attempts: z.number().int().min(1).max(10).default(4),
      /** Also send checkpoints and keys before the result. */
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
    /** An announced call that does not arrive in this time is forgotten. */
    announcedSeconds: seconds.default(60),
  }),
  z.strictObject({
    ...shared,
    dialect: z.literal("rtp"),
    host: z.string().min(1).default("127.0.0.1"),
    /** Each call gets one of these ports. */
    ports: z
      .tuple([port, port])
      .refine(([first, last]) => first <= last, "must be the first and the last port, as in [20000, 20999]")
      .default([20_000, 20_999]),
    format: z.enum(rtpFormats as [string, ...string[]]).default("ulaw"),
    announcedSeconds: seconds.default(60),
  }),
  z.strictObject({ ...shared, dialect: z.literal("asterisk-websocket"), ...basic }),
  z.strictObject({
    ...shared,
    dialect: z.literal("twilio"),
    /** The account's auth token, with which Twilio signs. */
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
    /** From the administrator of Genesys Cloud, in base64. */
    clientSecret: z.base64().min(16),
  }),
]);

export type Line = z.output<typeof lineSchema>;
export type LineOf<D extends Line["dialect"]> = Extract<Line, { dialect: D }>;

/** Path of a line's WebSocket and announcements. */
export const pathOf = (line: Pick<Line, "name">): string => `/telephony/${line.name}`;

/** Fills the template with the call's fields; a missing field is empty. */
export function filled(text: string, fields: Readonly<Record<string, string>>): string {
  return text.replace(/\{([^{}]+)\}/g, (_, name: string) => (Object.hasOwn(fields, name) ? fields[name]! : ""));
}
