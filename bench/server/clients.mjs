/** Callers of a box: over HTTP and over gRPC, with a token in every call. */
import http from "node:http";
import { fileURLToPath } from "node:url";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { socketSender } from "./sockets.mjs";

const PROTO = fileURLToPath(new URL("../../proto", import.meta.url));
const definition = grpc.loadPackageDefinition(
  loadSync(`${PROTO}/vendor/biosec/v1/voiceprints.proto`, { includeDirs: [PROTO] }),
);

/** A request as JSON and gRPC clients write it: a oneof is just the chosen field. */
const flat = (request) =>
  Object.fromEntries(
    Object.entries(request).map(([name, value]) => (value.case ? [value.case, value.value] : [name, value])),
  );

/** The contract over HTTP, with Node's own client. */
export const httpClient = (url, token) => contractOver(nodeSender(url, token));

/** The same for large numbers of callers. */
export const leanHttpClient = (url, token) => contractOver(socketSender(url, token));

function contractOver({ send, close }) {
  const ask = async (...request) => {
    const { status, body } = await send(...request);
    if (status === 200) return body;
    throw Object.assign(new Error(body.status.message), { status, retryAfter: body.status.retryAfter });
  };
  return {
    call(name, request) {
      const json = flat(request);
      const { verb, path } = bindingOf(name, json);
      return verb === "GET"
        ? ask(verb, `${path}?${contextQuery(json.context)}`)
        : ask(verb, path, "application/json", Buffer.from(JSON.stringify(json)));
    },
    upload: (context, bytes) => ask("POST", `/v1/audios?${contextQuery(context)}`, "audio/wav", bytes),
    close,
  };
}

function nodeSender(url, token) {
  const { hostname, port } = new URL(url);
  const agent = new http.Agent({ keepAlive: true });
  const headers = { authorization: `Bearer ${token}` };
  return {
    send: (method, path, type, body) =>
      new Promise((resolve, reject) => {
        const request = http.request({
          agent,
          hostname,
          port,
          method,
          path,
          headers: body ? { ...headers, "content-type": type, "content-length": body.length } : headers,
        });
        request.once("error", reject);
        request.once("response", (response) => {
          const chunks = [];
          response.on("data", (chunk) => chunks.push(chunk));
          response.once("error", reject);
          response.once("end", () =>
            resolve({ status: response.statusCode, body: JSON.parse(Buffer.concat(chunks).toString()) }),
          );
        });
        request.end(body);
      }),
    close: () => agent.destroy(),
  };
}

/** Only the bindings that the bench uses. */
function bindingOf(name, json) {
  const id = json.gkVoiceprintProfileId?.value;
  return {
    startSession: { verb: "POST", path: "/v1/sessions/start" },
    stopSession: { verb: "POST", path: "/v1/sessions/stop" },
    createVoiceprintProfile: { verb: "POST", path: "/v1/voiceprints/profiles" },
    processAudio: { verb: "POST", path: "/v1/audios/process" },
    enroll: { verb: "POST", path: `/v1/voiceprints/${id}/enrollment` },
    train: { verb: "POST", path: `/v1/voiceprints/${id}/training` },
    verify: { verb: "POST", path: `/v1/voiceprints/${id}/verification` },
    getEnrollStatus: { verb: "GET", path: `/v1/voiceprints/${id}/enrollment-status` },
  }[name];
}

export const contextQuery = ({ gkScopeId, gkSessionId, gkEngagementId, configsetId }) =>
  new URLSearchParams({
    "context.gk_scope_id.value": gkScopeId.value,
    "context.gk_session_id.value": gkSessionId.value,
    "context.gk_engagement_id.value": gkEngagementId.value,
    ...(configsetId ? { "context.configset_id": configsetId } : {}),
  });

/** The usual gRPC client of Node programs, generated from the .proto files. */
export function grpcClient(url, token) {
  const metadata = new grpc.Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const client = new definition.vendor.biosec.v1.VoiceprintsProcessor(
    new URL(url).host,
    grpc.credentials.createInsecure(),
  );
  return {
    call: (name, request) =>
      new Promise((resolve, reject) => {
        client[name](flat(request), metadata, (error, answer) => (error ? reject(error) : resolve(answer)));
      }),
    close: () => client.close(),
  };
}
