/** Health and reflection, called by a gRPC client made from the .proto files. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../src/contract/gen/grpc/health/v1/health_pb.js";
import { LONGEST_STANDARD_MESSAGE } from "../../src/server/grpc-standard.js";
import { type Rehearsal, rehearse } from "./rehearsal.js";

const PROTO = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "proto");
const options = { includeDirs: [PROTO], keepCase: true, enums: String, oneofs: true };
const definition = loadSync(["grpc/health/v1/health.proto", "grpc/reflection/v1/reflection.proto"], options);
// biome-ignore lint/suspicious/noExplicitAny: clients made from the .proto at run time have no types
const standard = grpc.loadPackageDefinition(definition) as any;

let rehearsal: Rehearsal;
let host: string;
beforeAll(async () => {
  rehearsal = rehearse();
  await rehearsal.service.listen();
  ({ host } = new URL(rehearsal.service.url));
});
afterAll(() => rehearsal.service.stop());

it("health answers for the server and each service, and reports an unknown service", async () => {
  const health = new standard.grpc.health.v1.Health(host, grpc.credentials.createInsecure());
  const check = (service: string) =>
    new Promise((resolve) => {
      health.check({ service }, (error: grpc.ServiceError | null, answer: { status: string }) =>
        resolve(error ? error.code : answer.status),
      );
    });
  // As for the contract's own calls, the framework is not needed: a load balancer asks every second, and anybody may.
  const metadata = new grpc.Metadata();
  metadata.set("x-request-id", "mine");
  const refused = await new Promise<grpc.ServiceError>((resolve) => {
    health.check({ service: "vendor.nothing" }, metadata, resolve);
  });
  expect(String(refused.metadata.get("grpc-status-details-bin")[0])).toMatch(/vendor\.rpc\.Status.*mine/s);
  expect(refused.metadata.get("x-request-id")).toEqual(["mine"]);
  const headers = await new Promise<grpc.Metadata>((resolve) => {
    health.check({ service: "" }, () => {}).on("metadata", resolve);
  });
  expect(headers.get("x-request-id")).toHaveLength(1);
  expect(await check("")).toBe("SERVING");
  expect(await check("vendor.biosec.v1.VoiceprintsProcessor")).toBe("SERVING");
  expect(await check("vendor.nothing")).toBe(grpc.status.NOT_FOUND);
  // The error repeats only a part of the name: a client takes no more than a few kilobytes of headers.
  expect(await check("x".repeat(4000))).toBe(grpc.status.NOT_FOUND);
  expect(await check("x".repeat(5000))).toBe(grpc.status.RESOURCE_EXHAUSTED);
  health.close();
});

it.each(["1.1", "2"] as const)("health answers over gRPC-Web and HTTP/%s, with a request id", async (httpVersion) => {
  const web = createClient(Health, createGrpcWebTransport({ baseUrl: rehearsal.service.url, httpVersion }));
  const headers: (string | null)[] = [];
  const onHeader = (sent: Headers) => headers.push(sent.get("x-request-id"));
  expect(await web.check({ service: "" }, { onHeader })).toMatchObject({ status: ServingStatus.SERVING });
  expect(headers).toEqual([expect.any(String)]);
  await expect(web.check({ service: "vendor.nothing, 100 %" })).rejects.toMatchObject({
    code: Code.NotFound,
    rawMessage: 'unknown service "vendor.nothing, 100 %"',
  });
});

it("an unknown method is NOT_IMPLEMENTED, with the contract's status", async () => {
  const client = new grpc.Client(host, grpc.credentials.createInsecure());
  const same = (bytes: Buffer) => bytes;
  const error = await new Promise<grpc.ServiceError | null>((resolve) => {
    client.makeUnaryRequest("/vendor.biosec.v1.VoiceprintsProcessor/Guess", same, same, Buffer.alloc(0), resolve);
  });
  client.close();
  expect(error).toMatchObject({
    code: grpc.status.UNIMPLEMENTED,
    details: "there is no method /vendor.biosec.v1.VoiceprintsProcessor/Guess",
  });
  expect(String(error!.metadata.get("grpc-status-details-bin")[0])).toContain("vendor.rpc.Status");
  const headers = { "content-type": "application/grpc-web+proto" };
  const web = await fetch(`http://${host}/vendor.nothing/Guess`, { method: "POST", headers, body: new Uint8Array(5) });
  expect(web.headers.get("grpc-status")).toBe(String(grpc.status.UNIMPLEMENTED));
  expect(web.headers.get("grpc-message")).toBe("there is no method /vendor.nothing/Guess");
});

/** `heard` grows with every status that the server sends. */
function watchHealth(url: string) {
  const health = new standard.grpc.health.v1.Health(new URL(url).host, grpc.credentials.createInsecure());
  const heard: string[] = [];
  const watching = health.watch({ service: "" });
  watching.on("data", ({ status }: { status: string }) => heard.push(status));
  watching.on("error", () => {});
  return { health, watching, heard };
}

it("a watcher is told of the shutdown and does not delay it", async () => {
  const other = rehearse();
  await other.service.listen();
  const { health, watching, heard } = watchHealth(other.service.url);
  const ended = new Promise((resolve) => watching.on("end", resolve));
  await expect.poll(() => heard).toEqual(["SERVING"]);
  expect(await other.service.stop()).toBe(true);
  await ended;
  expect(heard).toEqual(["SERVING", "NOT_SERVING"]);
  health.close();
});

it("a watcher is told of an unknown service, and a hundred may watch at a time", async () => {
  const health = new standard.grpc.health.v1.Health(host, grpc.credentials.createInsecure());
  const watch = (service: string) => {
    const call = health.watch({ service });
    return {
      call,
      /** The first status, or the code of the refusal. */
      first: new Promise<string | number>((resolve) => {
        call.on("data", ({ status }: { status: string }) => resolve(status));
        call.on("error", ({ code }: grpc.ServiceError) => resolve(code));
      }),
    };
  };
  const unknown = watch("vendor.nothing");
  expect(await unknown.first).toBe("SERVICE_UNKNOWN");
  await new Promise((resolve) => unknown.call.on("end", resolve));
  const watching = Array.from({ length: 100 }, () => watch(""));
  for (const { first } of watching) expect(await first).toBe("SERVING");
  expect(await watch("").first).toBe(grpc.status.RESOURCE_EXHAUSTED);
  for (const { call } of watching) call.cancel();
  await expect.poll(() => watch("").first, { timeout: 30_000 }).toBe("SERVING");
  health.close();
});

it("a server whose store or engine does not work is not serving", async () => {
  let isReady = false;
  const other = rehearse({}, {}, undefined, async () => {
    if (!isReady) throw new Error("the store is gone");
  });
  await other.service.listen();
  const { health, watching, heard } = watchHealth(other.service.url);
  await expect.poll(() => heard).toEqual(["NOT_SERVING"]);
  isReady = true;
  await expect.poll(() => heard, { timeout: 30_000 }).toEqual(["NOT_SERVING", "SERVING"]);
  watching.cancel();
  health.close();
  await other.service.stop();
});

/** As a tool has it that knows the earlier name only. */
function earlierReflection() {
  const source = readFileSync(join(PROTO, "grpc/reflection/v1/reflection.proto"), "utf8");
  const folder = mkdtempSync(join(tmpdir(), "reflection-"));
  writeFileSync(
    join(folder, "reflection.proto"),
    source.replace("package grpc.reflection.v1;", "package grpc.reflection.v1alpha;"),
  );
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const loaded = grpc.loadPackageDefinition(loadSync(join(folder, "reflection.proto"), options)) as any;
  rmSync(folder, { recursive: true });
  return loaded.grpc.reflection.v1alpha.ServerReflection;
}

it.each([
  ["v1", () => standard.grpc.reflection.v1.ServerReflection, {}],
  ["v1alpha", earlierReflection, {}],
  [
    "v1, compressed,",
    () => standard.grpc.reflection.v1.ServerReflection,
    { "grpc.default_compression_algorithm": grpc.compressionAlgorithms.gzip },
  ],
])("reflection %s lists the services and returns their files with all imports", async (_, serviceOf, channel) => {
  const client = new (serviceOf())(host, grpc.credentials.createInsecure(), channel);
  const call = client.serverReflectionInfo();
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const answers: any[] = [];
  call.on("data", (answer: unknown) => answers.push(answer));
  const ended = new Promise((resolve) => call.on("end", resolve));
  call.write({ list_services: "", host: "box" });
  call.write({ file_containing_symbol: "vendor.biosec.v1.VoiceprintsProcessor" });
  call.write({ file_by_filename: "vendor/rpc/status.proto" });
  call.write({ file_containing_symbol: "vendor.Nothing" });
  call.write({ file_containing_symbol: "vendor.biosec.v1.VoiceprintsProcessor.Verify" });
  call.write({ file_containing_symbol: "vendor.biosec.v1.Decision" });
  call.write({ file_by_filename: "nothing.proto" });
  call.write({ all_extension_numbers_of_type: "vendor.rpc.Status" });
  call.end();
  await ended;
  const [listed, bySymbol, byName, none, byMethod, byEnum, noFile, extensions] = answers;
  expect(listed).toMatchObject({ valid_host: "box", original_request: { host: "box", list_services: "" } });
  const names = listed.list_services_response.service.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(["vendor.biosec.v1.VoiceprintsProcessor", "grpc.health.v1.Health"]));
  const files = (answer: typeof bySymbol) =>
    answer.file_descriptor_response.file_descriptor_proto.map((bytes: Uint8Array) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
  const given = files(bySymbol);
  expect(given[0].service.map(({ name }: { name: string }) => name)).toContain("VoiceprintsProcessor");
  const known = new Set(given.map(({ name }: { name: string }) => name));
  for (const { dependency } of given) for (const name of dependency) expect(known).toContain(name);
  expect(files(byName)[0].name).toBe("vendor/rpc/status.proto");
  expect(none.error_response).toEqual({
    error_code: grpc.status.NOT_FOUND,
    error_message: "symbol vendor.Nothing not found",
  });
  expect(files(byMethod)[0].name).toBe("vendor/biosec/v1/voiceprints.proto");
  expect(files(byEnum)[0].enumType.map(({ name }: { name: string }) => name)).toContain("Decision");
  expect(new Set(known).size).toBe(given.length);
  expect(noFile.error_response).toMatchObject({ error_code: grpc.status.NOT_FOUND });
  expect(extensions.error_response).toMatchObject({ error_code: grpc.status.UNIMPLEMENTED });
  client.close();
});

it("reflection knows every name that a file declares", async () => {
  const client = new standard.grpc.reflection.v1.ServerReflection(host, grpc.credentials.createInsecure());
  const call = client.serverReflectionInfo();
  const names = {
    "grpc.health.v1.HealthCheckResponse.ServingStatus": "grpc/health/v1/health.proto",
    "grpc.health.v1.HealthCheckResponse.SERVING": "grpc/health/v1/health.proto",
    "google.protobuf.FieldDescriptorProto.Type": "google/protobuf/descriptor.proto",
    "vendor.biosec.v1.DECISION_UNSPECIFIED": "vendor/biosec/v1/common.proto",
    "vendor.biosec.v1.Context.gk_scope_id": "vendor/biosec/v1/common.proto",
    "vendor.biosec.v1.ListenRequest.content": "vendor/biosec/v1/live.proto",
    "vendor.rpc.mandatory": "vendor/rpc/mandatory.proto",
  };
  for (const name of Object.keys(names)) call.write({ file_containing_symbol: name });
  call.end();
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const files = (await call.toArray()).map((answer: any) => {
    const [first] = answer.file_descriptor_response?.file_descriptor_proto ?? [];
    return first && fromBinary(FileDescriptorProtoSchema, first).name;
  });
  expect(files).toEqual(Object.values(names));
  client.close();
});

const REFLECTION = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

/** How many of the messages were answered, and how the call ended. */
async function reflectionOf(...messages: Buffer[]) {
  const client = new grpc.Client(host, grpc.credentials.createInsecure());
  const same = (bytes: Buffer) => bytes;
  const call = client.makeBidiStreamRequest(REFLECTION, same, same);
  const answers: Buffer[] = [];
  call.on("data", (answer: Buffer) => answers.push(answer));
  call.on("error", () => {});
  for (const message of messages) call.write(message);
  call.end();
  const status = await new Promise<grpc.StatusObject>((resolve) => call.on("status", resolve));
  client.close();
  return { answers: answers.length, status };
}

it.each([
  ["not a message", Buffer.from([0xff]), grpc.status.INVALID_ARGUMENT],
  ["too long", Buffer.alloc(LONGEST_STANDARD_MESSAGE + 1), grpc.status.RESOURCE_EXHAUSTED],
])("reflection refuses a message that is %s, after it has answered those before", async (_, message, code) => {
  const { answers, status } = await reflectionOf(Buffer.from([0x3a, 0]), message);
  expect([answers, status.code]).toEqual([1, code]);
  expect(String(status.metadata.get("grpc-status-details-bin")[0])).toContain("vendor.rpc.Status");
});

it("reflection answers a client that reads slowly, and forgets one that leaves", async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  const session = http2.connect(`http://${host}`);
  const asked = Buffer.from("\0\0\0\0\x27\x22\x25vendor.biosec.v1.VoiceprintsProcessor", "latin1");
  const ask = (times: number) => {
    const headers = { ":method": "POST", ":path": REFLECTION, "content-type": "application/grpc" };
    const stream = session.request(headers);
    stream.end(Buffer.concat(Array(times).fill(asked)));
    return stream;
  };
  const left = ask(200);
  await once(left, "response");
  left.close();
  const slow = ask(200);
  let status: unknown;
  slow.on("trailers", (trailers) => {
    status = trailers["grpc-status"];
  });
  await once(slow, "response");
  const bytes = Buffer.concat(await slow.toArray());
  let [frames, at] = [0, 0];
  for (; at < bytes.length; frames++) at += 5 + bytes.readUInt32BE(at + 1);
  expect([frames, at, status]).toEqual([200, bytes.length, "0"]);
  session.close();
  expect(rehearsal.logged.filter(({ level }) => level === "error")).toEqual([]);
  process.off("warning", warn);
  // For example of listeners that stay.
  expect(warnings).toEqual([]);
});
