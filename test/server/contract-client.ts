/** Clients that use only the contract: the .proto files over gRPC, the endpoint table over HTTP. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

// biome-ignore lint/suspicious/noExplicitAny: answers of a contract read at run time have no types
export type Json = any;

/** Calls an operation by name, with snake_case fields; rejects with `{ statusCode }` if the answer is an error. */
export interface ContractClient {
  /** Whether `Int32Value` and similar types are messages here, or bare values. */
  readonly wrapsScalars: boolean;
  call(operation: string, request: Json): Promise<Json>;
  upload(context: Json, bytes: Uint8Array, format?: Json): Promise<Json>;
  close(): void;
}

const PROTO = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "proto");
const FILES = ["voiceprints", "media", "sessions", "engagements", "profiles", "groups"];

const loaded = grpc.loadPackageDefinition(
  loadSync(
    FILES.map((name) => join(PROTO, "vendor", "biosec", "v1", `${name}.proto`)),
    { includeDirs: [PROTO], keepCase: true, enums: String, longs: Number, defaults: false, oneofs: false },
  ),
) as Json;

const SERVICES = [
  "VoiceprintsProcessor",
  "MediaProcessor",
  "SessionsProcessor",
  "EngagementsProcessor",
  "ProfilesProcessor",
  "GroupsProcessor",
];

export function overGrpc(url: string, token: () => string | null): ContractClient {
  const address = new URL(url).host;
  const clients: Record<string, Json> = Object.fromEntries(
    SERVICES.map((name) => [name, new loaded.vendor.biosec.v1[name](address, grpc.credentials.createInsecure())]),
  );
  const metadata = () => {
    const headers = new grpc.Metadata();
    const value = token();
    if (value) headers.set("authorization", `Bearer ${value}`);
    return headers;
  };
  const owner = (operation: string) =>
    Object.values(clients).find((client) => typeof client[operation] === "function") ??
    (() => {
      throw new Error(`no such operation: ${operation}`);
    })();
  const settle = (resolve: (value: Json) => void, reject: (reason: unknown) => void) => (error: Json, reply: Json) =>
    error ? reject(error) : resolve(reply);
  return {
    wrapsScalars: true,
    call: (operation, request) =>
      new Promise((resolve, reject) => owner(operation)[operation](request, metadata(), settle(resolve, reject))),
    upload: (context, bytes, format = {}) =>
      new Promise((resolve, reject) => {
        const call = clients.MediaProcessor.AddMediaSegment(metadata(), settle(resolve, reject));
        call.write({ context, ...format });
        for (let at = 0; at < bytes.length; at += 16_384) call.write({ chunk: bytes.subarray(at, at + 16_384) });
        call.end();
      }),
    close: () => {
      for (const client of Object.values(clients)) client.close();
    },
  };
}

/** From the endpoint tables of the specification. */
const ENDPOINTS: Record<string, readonly [verb: string, path: string]> = {
  ProcessAudio: ["POST", "/v1/audios/process"],
  Enroll: ["POST", "/v1/voiceprints/{p}/enrollment"],
  GetEnrollStatus: ["GET", "/v1/voiceprints/{p}/enrollment-status"],
  Train: ["POST", "/v1/voiceprints/{p}/training"],
  CheckWatchlistConsistency: ["POST", "/v1/voiceprints/watchlist:check-consistency"],
  Verify: ["POST", "/v1/voiceprints/{p}/verification"],
  Identify: ["POST", "/v1/voiceprints/identification"],
  DetectKnownFraudsters: ["POST", "/v1/voiceprints/known-fraudsters-detection"],
  AnalyzeAudio: ["POST", "/v1/voiceprints/audio-analysis"],
  StartEngagement: ["POST", "/v1/engagements/start"],
  StopEngagement: ["POST", "/v1/engagements/stop"],
  StartSession: ["POST", "/v1/sessions/start"],
  StopSession: ["POST", "/v1/sessions/stop"],
  GetSessionDecision: ["GET", "/v1/sessions/decision"],
  CreateVoiceprintProfile: ["POST", "/v1/voiceprints/profiles"],
  GetGkVoiceprintProfileId: ["GET", "/v1/voiceprints/profiles/gkid"],
  DeleteVoiceprintProfile: ["DELETE", "/v1/voiceprints/{p}"],
  CreateGroup: ["POST", "/v1/groups"],
  GetGroup: ["GET", "/v1/groups/{g}"],
  DeleteGroup: ["DELETE", "/v1/groups/{g}"],
  AddGroupMembers: ["POST", "/v1/groups/{g}/members"],
  RemoveGroupMembers: ["DELETE", "/v1/groups/{g}/members"],
  CreateWatchlist: ["POST", "/v1/watchlists"],
  GetWatchlist: ["GET", "/v1/watchlists/{g}"],
  DeleteWatchlist: ["DELETE", "/v1/watchlists/{g}"],
  AddWatchlistMembers: ["POST", "/v1/watchlists/{g}/members"],
  RemoveWatchlistMembers: ["DELETE", "/v1/watchlists/{g}/members"],
  StartVoiceprintProfilesStatusJob: ["POST", "/v1/voiceprints/profiles/status"],
  GetVoiceprintProfilesStatusJob: ["GET", "/v1/voiceprints/profiles/status/{j}"],
};

export function overHttp(urls: () => string, token: () => string | null): ContractClient {
  const headers = (type?: string) => ({
    ...(type ? { "content-type": type } : {}),
    ...(token() ? { authorization: `Bearer ${token()}` } : {}),
  });
  const answer = async (response: Response) => {
    const json = (await response.json()) as Json;
    if (!response.ok)
      throw Object.assign(new Error(json.status?.message), {
        statusCode: json.status?.statusCode,
        http: response.status,
      });
    return snake(json);
  };
  return {
    wrapsScalars: false,
    async call(operation, request) {
      const [verb, template] = ENDPOINTS[operation]!;
      const { gk_voiceprint_profile_id: p, gk_group_id: g, gk_job_id: j, ...rest } = request;
      const path = template.replace("{p}", p?.value).replace("{g}", g?.value).replace("{j}", j?.value);
      const body = { ...rest, ...(template.includes("{p}") || !p ? {} : { gk_voiceprint_profile_id: p }) };
      const url = urls() + path;
      return answer(
        verb === "POST" || template.endsWith("/members")
          ? await fetch(url, { method: verb, body: JSON.stringify(body), headers: headers("application/json") })
          : await fetch(`${url}?${dotted(body)}`, { method: verb, headers: headers() }),
      );
    },
    async upload(context, bytes, format = {}) {
      const url = `${urls()}/v1/audios?${dotted({ context, ...format })}`;
      return answer(await fetch(url, { method: "POST", body: bytes as BodyInit, headers: headers("audio/wav") }));
    },
    close() {},
  };
}

function dotted(value: Json, prefix = ""): string {
  return Object.entries(value)
    .map(([key, inner]) =>
      typeof inner === "object"
        ? dotted(inner, `${prefix}${key}.`)
        : `${prefix}${key}=${encodeURIComponent(String(inner))}`,
    )
    .join("&");
}

function snake(value: Json): Json {
  if (Array.isArray(value)) return value.map(snake);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      snake(inner),
    ]),
  );
}
