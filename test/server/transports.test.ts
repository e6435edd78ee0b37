import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { create, fromBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { afterEach, describe, expect, it } from "vitest";
import {
  type AddMediaSegmentRequest,
  AddMediaSegmentResponseSchema,
  ListenResponseSchema,
  StatusCode,
  StatusError,
  StatusSchema,
  VerifyResponseSchema,
  VoiceprintsProcessor,
} from "../../src/contract/index.js";
import type { Guard } from "../../src/server/guard.js";
import { rehearse } from "./rehearsal.js";

const run = promisify(execFile);
const PROTO = join(dirname(fileURLToPath(import.meta.url)), "..", "..", "proto");

/** A client that uses only the .proto files. */
const contract = grpc.loadPackageDefinition(
  loadSync(
    ["voiceprints", "media", "sessions"].map((name) => join(PROTO, "vendor", "biosec", "v1", `${name}.proto`)),
    { includeDirs: [PROTO], keepCase: true, enums: String, longs: Number, defaults: false, oneofs: true },
  ),
) as unknown as { vendor: { biosec: { v1: Record<string, grpc.ServiceClientConstructor> } } };

// biome-ignore lint/suspicious/noExplicitAny: a client made from the .proto at run time has no types
type AnyClient = any;
const clients: grpc.Client[] = [];
function grpcClient(service: string, url: string): AnyClient {
  const client = new contract.vendor.biosec.v1[service]!(new URL(url).host, grpc.credentials.createInsecure());
  clients.push(client);
  return client;
}

const context = {
  gk_engagement_id: { value: "e" },
  gk_session_id: { value: "s" },
  gk_scope_id: { value: "scope" },
  configset_id: "ivr-text-dependent",
};

const started: { stop(): Promise<unknown> }[] = [];
async function listening(...parts: Parameters<typeof rehearse>) {
  const rehearsal = rehearse(...parts);
  await rehearsal.service.listen();
  started.push(rehearsal.service);
  return { ...rehearsal, url: rehearsal.service.url };
}
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await Promise.all(started.splice(0).map((service) => service.stop()));
});

const failing = (status: ConstructorParameters<typeof StatusError>[0]) => ({
  verify: () => {
    throw new StatusError(status);
  },
});

describe("one port, every protocol", () => {
  it("answers gRPC, gRPC-Web, Connect and HTTP from the same operation", async () => {
    const { url, seen } = await listening({
      verify: () =>
        create(VerifyResponseSchema, { status: { statusCode: StatusCode.OK }, result: { voiceClassScore: 40 } }),
    });
    const request = { context, gk_voiceprint_profile_id: { value: "p" }, gk_media_segment_id: { value: "m" } };

    const viaGrpc = await new Promise<AnyClient>((resolve, reject) =>
      grpcClient("VoiceprintsProcessor", url).Verify(request, (error: Error | null, reply: unknown) =>
        error ? reject(error) : resolve(reply),
      ),
    );
    expect(viaGrpc.result.voice_class_score.value).toBe(40);

    for (const transport of [
      createGrpcWebTransport({ baseUrl: url, httpVersion: "1.1" }),
      createGrpcWebTransport({ baseUrl: url, httpVersion: "2" }),
      createConnectTransport({ baseUrl: url, httpVersion: "1.1" }),
      createConnectTransport({ baseUrl: url, httpVersion: "2", useBinaryFormat: true }),
    ]) {
      const reply = await createClient(VoiceprintsProcessor, transport).verify({
        gkVoiceprintProfileId: { value: "p" },
      });
      expect(reply.result!.voiceClassScore).toBe(40);
    }
    const { stdout } = await run("curl", [
      "-sS",
      "-H",
      "content-type: application/json",
      "-d",
      JSON.stringify({ context }),
      `${url}/v1/voiceprints/p/verification`,
    ]);
    expect(JSON.parse(stdout).result.voiceClassScore).toBe(40);
    const overH2 = await run("curl", ["-sS", "--http2-prior-knowledge", "-w", "%{http_version}", `${url}/healthz`]);
    expect(overH2.stdout).toBe("ok\n2");
    expect(seen).toHaveLength(6);
  });

  it("streams a recording over gRPC in chunks", async () => {
    const pieces: number[] = [];
    const { url } = await listening({
      addMediaSegment: async (messages: AsyncIterable<AddMediaSegmentRequest>) => {
        for await (const message of messages) pieces.push(message.chunk.length);
        return create(AddMediaSegmentResponseSchema, {
          status: { statusCode: StatusCode.OK },
          gkMediaSegmentId: { value: "m1" },
        });
      },
    });
    const reply = await new Promise<AnyClient>((resolve, reject) => {
      const call = grpcClient("MediaProcessor", url).AddMediaSegment((error: Error | null, answer: unknown) =>
        error ? reject(error) : resolve(answer),
      );
      call.write({ context, encoding: "pcm16", rate: 8000, channels: 1 });
      for (let i = 0; i < 5; i++) call.write({ chunk: Buffer.alloc(16_000) });
      call.end();
    });
    expect(reply.gk_media_segment_id.value).toBe("m1");
    expect(pieces).toEqual([0, 16_000, 16_000, 16_000, 16_000, 16_000]);
  });

  it("accepts a recording as the body of a POST, with its format in the query", async () => {
    const received: AddMediaSegmentRequest[] = [];
    const { url } = await listening({
      addMediaSegment: async (messages: AsyncIterable<AddMediaSegmentRequest>) => {
        for await (const message of messages) received.push(message);
        return create(AddMediaSegmentResponseSchema, { status: { statusCode: StatusCode.OK } });
      },
    });
    const query = "context.gk_scope_id.value=scope&context.gk_session_id.value=s&encoding=alaw&rate=8000&channels=2";
    const response = await fetch(`${url}/v1/audios?${query}`, {
      method: "POST",
      body: new Uint8Array(300_000).fill(7),
    });
    expect(response.status).toBe(200);
    expect(received[0]).toMatchObject({
      encoding: "alaw",
      rate: 8000,
      channels: 2,
      context: { gkScopeId: { value: "scope" } },
    });
    expect(received.slice(1).reduce((bytes, { chunk }) => bytes + chunk.length, 0)).toBe(300_000);
  });
});

describe("errors over gRPC", () => {
  it.each([
    [StatusCode.INVALID_REQUEST, grpc.status.INVALID_ARGUMENT],
    [StatusCode.CANCELLED, grpc.status.CANCELLED],
    [StatusCode.DEADLINE_EXCEEDED, grpc.status.DEADLINE_EXCEEDED],
    [StatusCode.NOT_AUTHORIZED, grpc.status.UNAUTHENTICATED],
    [StatusCode.PERMISSION_DENIED, grpc.status.PERMISSION_DENIED],
    [StatusCode.NOT_FOUND, grpc.status.NOT_FOUND],
    [StatusCode.ALREADY_EXISTS, grpc.status.ALREADY_EXISTS],
    [StatusCode.NOT_IMPLEMENTED, grpc.status.UNIMPLEMENTED],
    [StatusCode.TOO_LARGE, grpc.status.RESOURCE_EXHAUSTED],
    [StatusCode.BUSY, grpc.status.UNAVAILABLE],
    [StatusCode.OBSOLETE, grpc.status.FAILED_PRECONDITION],
    [StatusCode.RATE_EXCEEDED, grpc.status.RESOURCE_EXHAUSTED],
    [StatusCode.INTERNAL_ERROR, grpc.status.INTERNAL],
  ])("status %i is canonical code %i, with the status in the trailers' details", async (statusCode, code) => {
    const { url } = await listening(
      failing({ statusCode, message: "because", fieldViolations: [{ field: "f", violation: "v" }] }),
    );
    const error = await new Promise<grpc.ServiceError>((resolve) =>
      grpcClient("VoiceprintsProcessor", url).Verify({ context }, (failure: grpc.ServiceError) => resolve(failure)),
    );
    expect(error.code).toBe(code);
    const status = detailOf(error);
    expect(status).toMatchObject({ statusCode, message: "because", fieldViolations: [{ field: "f", violation: "v" }] });
    expect(status.requestId).not.toBe("");
  });

  it("ends a call whose deadline passes, and stops its work", async () => {
    const stopped = withResolvers();
    let reached = false;
    const { url } = await listening({
      verify: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          reached = true;
          signal.addEventListener("abort", () => {
            stopped.resolve(undefined);
            reject(signal.reason);
          });
        }),
    });
    const client = grpcClient("VoiceprintsProcessor", url);
    // On a slow machine a deadline may pass before the work has begun.
    for (let ms = 100; !reached; ms *= 3) {
      const error = await new Promise<grpc.ServiceError>((resolve) =>
        client.Verify({ context }, { deadline: Date.now() + ms }, (failure: grpc.ServiceError) => resolve(failure)),
      );
      expect(error.code).toBe(grpc.status.DEADLINE_EXCEEDED);
    }
    await stopped.promise;
  });
});

function withResolvers() {
  let resolve: (value: unknown) => void = () => {};
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** google.rpc.Status is { code, message, details: Any[] }: field 3 is the Any, and its field 2 is our status. */
function detailOf(error: grpc.ServiceError) {
  const bytes = error.metadata.get("grpc-status-details-bin")[0] as Buffer;
  const any = lengthDelimited(bytes, 3)[0]!;
  expect(lengthDelimited(any, 1)[0]!.toString()).toBe("type.googleapis.com/vendor.rpc.Status");
  return fromBinary(StatusSchema, lengthDelimited(any, 2)[0]!);
}

function lengthDelimited(bytes: Uint8Array, field: number): Buffer[] {
  const found: Buffer[] = [];
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    if ((tag & 7) === 0) varint();
    else {
      const length = varint();
      if (tag >> 3 === field) found.push(Buffer.from(bytes.slice(at, at + length)));
      at += length;
    }
  }
  return found;
}

describe("misbehaving callers", () => {
  it("stops the work for a caller that disconnects", async () => {
    const reached = withResolvers();
    const aborted = withResolvers();
    const { url } = await listening({
      verify: (_, { signal }) =>
        new Promise((_resolve, reject) => {
          reached.resolve(undefined);
          signal.addEventListener("abort", () => {
            aborted.resolve(undefined);
            reject(signal.reason);
          });
        }),
    });
    const controller = new AbortController();
    const call = fetch(`${url}/v1/voiceprints/p/verification`, {
      method: "POST",
      body: JSON.stringify({ context }),
      headers: { "content-type": "application/json" },
      signal: controller.signal,
    });
    const broken = expect(call).rejects.toThrow();
    await reached.promise;
    controller.abort();
    await broken;
    await aborted.promise;
  });

  describe("a caller that disconnects leaves nothing behind, and no error in the log", () => {
    const VERIFY = "/vendor.biosec.v1.VoiceprintsProcessor/Verify";
    const overHttp1 = (path: string, type: string) => (url: string) => {
      const request = http.request(url + path, { method: "POST", headers: { "content-type": type } });
      request.on("error", () => {});
      request.end(type.endsWith("json") ? "{}" : "");
      return () => request.destroy();
    };
    const overHttp2 =
      (path: string, type: string, isReset = false) =>
      (url: string) => {
        const session = http2.connect(url);
        session.on("error", () => {});
        const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
        stream.on("error", () => {});
        stream.end(type.endsWith("json") ? "{}" : Buffer.alloc(5));
        return () => (isReset ? stream.close(http2.constants.NGHTTP2_CANCEL) : session.destroy());
      };
    const ways: [string, (url: string) => () => void][] = [
      ["HTTP/1.1", overHttp1("/v1/voiceprints/p/verification", "application/json")],
      ["HTTP/2", overHttp2("/v1/voiceprints/p/verification", "application/json")],
      ["HTTP/2, only this call", overHttp2("/v1/voiceprints/p/verification", "application/json", true)],
      ["gRPC", overHttp2(VERIFY, "application/grpc")],
      ["gRPC, only this call", overHttp2(VERIFY, "application/grpc", true)],
      ["Connect over HTTP/1.1", overHttp1(VERIFY, "application/json")],
      ["Connect over HTTP/2", overHttp2(VERIFY, "application/json")],
    ];

    it.each(ways)("while its token is verified, over %s", async (_, connect) => {
      const [asked, admitted] = [withResolvers(), withResolvers()];
      const guard: Guard = {
        async admit() {
          asked.resolve(undefined);
          await admitted.promise;
          return { id: "a", mayTouch: () => true };
        },
      };
      const { url, service, logged } = await listening({}, { limits: { stopSeconds: 10 } }, guard);
      const leave = connect(url);
      await asked.promise;
      leave();
      // The server has seen it by the time that it has answered another.
      await (await fetch(`${url}/healthz`)).text();
      admitted.resolve(undefined);
      const statuses = () => logged.filter(({ message }) => message === "call").map(({ status }) => status);
      await expect.poll(statuses, { timeout: 30_000 }).toEqual(["CANCELLED"]);
      expect(service.dispatcher.running).toBe(0);
      expect(await service.stop()).toBe(true);
      expect(logged.filter(({ level }) => level === "error")).toEqual([]);
    });

    it.each(ways)("while its call is worked on, over %s", async (_, connect) => {
      const [reached, done] = [withResolvers(), withResolvers()];
      const { url, service, logged } = await listening({
        verify: async () => {
          reached.resolve(undefined);
          await done.promise;
          return create(VerifyResponseSchema, {});
        },
      });
      const leave = connect(url);
      await reached.promise;
      leave();
      const statuses = () => logged.filter(({ message }) => message === "call").map(({ status }) => status);
      await expect.poll(statuses, { timeout: 30_000 }).toEqual(["CANCELLED"]);
      done.resolve(undefined);
      expect(await service.stop()).toBe(true);
      expect(logged.filter(({ level }) => level === "error")).toEqual([]);
    });
  });

  it("tells a gRPC caller without a message so, also if its token takes a while to verify", async () => {
    const guard: Guard = {
      admit: () => new Promise((resolve) => setTimeout(() => resolve({ id: "a", mayTouch: () => true }), 50)),
    };
    const { url } = await listening({}, {}, guard);
    const session = http2.connect(url);
    const path = "/vendor.biosec.v1.VoiceprintsProcessor/Verify";
    const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc" };
    const stream = session.request(headers, { endStream: true });
    stream.resume();
    const [trailers] = await once(stream, "trailers");
    expect(trailers).toMatchObject({ "grpc-status": "3", "grpc-message": "expected one message, got none" });
    session.destroy();
  });

  it("refuses what is declared to be too large before it is sent", async () => {
    const { url } = await listening({}, { limits: { messageBytes: 1000, mediaBytes: 1000 } });
    for (const [path, type] of [
      ["/v1/sessions/start", "application/json"],
      ["/v1/audios", "audio/wav"],
    ] as const) {
      const headers = { "content-type": type, "content-length": 1001 };
      const call = http.request(url + path, { method: "POST", headers });
      call.on("error", () => {});
      call.flushHeaders();
      const [response] = (await once(call, "response")) as [http.IncomingMessage];
      expect([path, response.statusCode]).toEqual([path, 413]);
      response.resume();
      call.destroy();
    }
  });

  it("takes an upload and a live call that last longer than other messages may", async () => {
    const { url } = await listening(
      {
        listen: async function* (requests: AsyncIterable<unknown>) {
          for await (const _ of requests);
          yield create(ListenResponseSchema, { party: "caller" });
        } as never,
      },
      { limits: { readSeconds: 0.2 } },
    );
    const pause = () => new Promise((resolve) => setTimeout(resolve, 700));
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(new Uint8Array(10));
        await pause();
        controller.enqueue(new Uint8Array(10));
        controller.close();
      },
    });
    const upload = { method: "POST", body, duplex: "half", headers: { "content-type": "audio/wav" } } as RequestInit;
    const session = http2.connect(url);
    const overGrpc = async (path: string) => {
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc" });
      stream.resume();
      const ended = once(stream, "trailers");
      stream.write(Buffer.alloc(5));
      await pause();
      stream.end(Buffer.alloc(5));
      return (await ended)[0]["grpc-status"];
    };
    const [overHttp, media, live] = await Promise.all([
      fetch(`${url}/v1/audios?context.gk_scope_id.value=s`, upload).then(({ status }) => status),
      overGrpc("/vendor.biosec.v1.MediaProcessor/AddMediaSegment"),
      overGrpc("/vendor.biosec.v1.LiveProcessor/Listen"),
    ]);
    expect([overHttp, media, live]).toEqual([200, "0", "0"]);
    session.destroy();
  });

  const UPLOAD = "/vendor.biosec.v1.MediaProcessor/AddMediaSegment";
  const overHttp1 = (url: string) => {
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(
      "POST /v1/audios?context.gk_scope_id.value=scope HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n",
    );
    socket.write(Buffer.alloc(20_000));
    return () => socket.destroy();
  };
  const overHttp2 = (path: string, type: string, isReset: boolean) => (url: string) => {
    const session = http2.connect(url);
    session.on("error", () => {});
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
    stream.on("error", () => {});
    const message = Buffer.from([0, 0, 0, 0, 7, (5 << 3) | 2, 5, 1, 2, 3, 4, 5]);
    stream.write(type === "audio/wav" ? Buffer.alloc(20_000) : message);
    return () => (isReset ? stream : session).destroy();
  };

  it.each([
    ["HTTP/1.1", overHttp1],
    ["HTTP/2", overHttp2("/v1/audios", "audio/wav", false)],
    ["HTTP/2, only this call", overHttp2("/v1/audios", "audio/wav", true)],
    ["gRPC", overHttp2(UPLOAD, "application/grpc", false)],
    ["gRPC, only this call", overHttp2(UPLOAD, "application/grpc", true)],
    ["Connect, only this call", overHttp2(UPLOAD, "application/connect+proto", true)],
  ])("discards an upload that is aborted, over %s", async (_, send) => {
    const outcome = withResolvers();
    const heard = withResolvers();
    const { url } = await listening({
      addMediaSegment: async (messages: AsyncIterable<AddMediaSegmentRequest>) => {
        try {
          for await (const { chunk } of messages) if (chunk.length > 0) heard.resolve(undefined);
          outcome.resolve("finished");
        } catch (error) {
          outcome.resolve(error);
          throw error;
        }
        return create(AddMediaSegmentResponseSchema, {});
      },
    });
    const leave = send(url);
    await heard.promise;
    leave();
    expect(await outcome.promise).toBeInstanceOf(StatusError);
  });

  it("answers a gigabyte, declared or not, with TOO_LARGE without storing it", async () => {
    let kept = 0;
    const { url } = await listening(
      {
        addMediaSegment: async (messages: AsyncIterable<AddMediaSegmentRequest>) => {
          for await (const message of messages) kept += message.chunk.length;
          return create(AddMediaSegmentResponseSchema, {});
        },
      },
      { limits: { mediaBytes: 1_000_000 } },
    );
    const upload = `curl -sS -w ' %{http_code}' -X POST -H 'content-type: audio/wav' '${url}/v1/audios' -T`;
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-large-"));
    try {
      const declared = `truncate -s 1G ${folder}/zeros && ${upload} ${folder}/zeros || true`;
      const streamed = `head -c 1073741824 /dev/zero | ${upload} - || true`;
      for (const command of [declared, streamed]) {
        const { stdout } = await run("bash", ["-c", command]);
        expect(stdout).toContain("TOO_LARGE");
        expect(stdout).toMatch(/ 413$/);
      }
    } finally {
      await rm(folder, { recursive: true });
    }
    expect(kept).toBeLessThanOrEqual(1_000_000);
    const memory = process.memoryUsage().arrayBuffers;
    expect(memory).toBeLessThan(200e6);
  });

  it("takes a recording of exactly the largest size, and not of one byte more", async () => {
    const operations = {
      addMediaSegment: async (messages: AsyncIterable<AddMediaSegmentRequest>) => {
        for await (const _ of messages);
        return create(AddMediaSegmentResponseSchema, {});
      },
    };
    const { url } = await listening(operations, { limits: { mediaBytes: 10_000 } });
    const upload = async (bytes: number) => {
      const body = new Uint8Array(bytes);
      return (await fetch(`${url}/v1/audios`, { method: "POST", body, headers: { "content-type": "audio/wav" } }))
        .status;
    };
    expect(await upload(10_000)).toBe(200);
    expect(await upload(10_001)).toBe(413);
  });

  describe("answers a client that keeps sending after a refusal, and soon disconnects it", () => {
    const refusing = () =>
      listening(
        {
          addMediaSegment: async (messages: AsyncIterable<AddMediaSegmentRequest>) => {
            for await (const _ of messages)
              throw new StatusError({ statusCode: StatusCode.NOT_FOUND, message: "gone" });
            return create(AddMediaSegmentResponseSchema, {});
          },
        },
        { limits: { stopSeconds: 5 } },
      );

    it("over HTTP/1.1", async () => {
      const { url } = await refusing();
      const send = `head -c 1073741824 /dev/zero | curl -sS --max-time 60 -w ' %{http_code}' -X POST -H 'content-type: audio/wav' '${url}/v1/audios' -T - || true`;
      const { stdout } = await run("bash", ["-c", send]);
      expect(stdout).toContain("gone");
      expect(stdout).toMatch(/ 404$/);
    });

    it.each([
      ["HTTP/2", "/v1/audios", "audio/wav", { ":status": 404 }],
      ["gRPC", "/vendor.biosec.v1.MediaProcessor/AddMediaSegment", "application/grpc", { "grpc-status": "5" }],
    ])("over %s, and does not wait for it when stopping", async (_, path, type, expected) => {
      const { url, service } = await refusing();
      const session = http2.connect(url);
      const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
      let answered: http2.IncomingHttpHeaders = {};
      const note = (headers: http2.IncomingHttpHeaders) => {
        answered = { ...answered, ...headers };
      };
      stream
        .on("response", note)
        .on("trailers", note)
        .on("error", () => {});
      stream.resume();
      const ended = new Promise<void>((resolve) => stream.once("close", () => resolve()));
      // Endless, as fast as it is read.
      const zeros = Buffer.alloc(65_536);
      const more = () => {
        while (stream.writable && stream.write(zeros));
      };
      stream.on("drain", more);
      more();
      await ended;
      expect(answered).toMatchObject(expected);
      expect(stream.rstCode).toBe(http2.constants.NGHTTP2_NO_ERROR);
      expect(await service.stop()).toBe(true);
      session.destroy();
    });
  });

  it("gives a gRPC client the error message unescaped, for unary and streaming calls", async () => {
    const message = "no 100 %; für alle, 日本 too";
    const refuse = () => {
      throw new StatusError({ statusCode: StatusCode.INVALID_REQUEST, message });
    };
    const { url } = await listening({ verify: refuse, addMediaSegment: refuse });
    const details = await Promise.all([
      new Promise((resolve) =>
        grpcClient("VoiceprintsProcessor", url).Verify({ context }, (error: grpc.ServiceError) =>
          resolve(error.details),
        ),
      ),
      new Promise((resolve) => {
        const call = grpcClient("MediaProcessor", url).AddMediaSegment((error: grpc.ServiceError) =>
          resolve(error.details),
        );
        call.on("error", () => {});
        call.end({ context });
      }),
    ]);
    expect(details).toEqual([message, message]);
  });

  it("answers an endless recording of empty messages with TOO_LARGE", async () => {
    const { url } = await listening({}, { limits: { mediaBytes: 10_000 } });
    const error = await new Promise<grpc.ServiceError>((resolve) => {
      const call = grpcClient("MediaProcessor", url).AddMediaSegment((failure: grpc.ServiceError) => resolve(failure));
      call.on("error", () => {});
      call.write({ context });
      for (let i = 0; i < 200; i++) call.write({ chunk: Buffer.alloc(0) });
      call.end();
    });
    expect(error.code).toBe(grpc.status.RESOURCE_EXHAUSTED);
    expect(detailOf(error).statusCode).toBe(StatusCode.TOO_LARGE);
  });

  it("refuses a JSON body that is too large, and one that is compressed", async () => {
    const { url } = await listening({}, { limits: { messageBytes: 1000 } });
    const large = await fetch(`${url}/v1/sessions/start`, {
      method: "POST",
      body: JSON.stringify({ external_id: "x".repeat(2000) }),
      headers: { "content-type": "application/json" },
    });
    expect(large.status).toBe(413);
    // Without its length, in pieces.
    const pieces = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (let i = 0; i < 5; i++) {
          controller.enqueue(new Uint8Array(400));
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        controller.close();
      },
    });
    const streamed = await fetch(`${url}/v1/sessions/start`, {
      method: "POST",
      body: pieces,
      duplex: "half",
      headers: { "content-type": "application/json" },
    } as RequestInit);
    expect([streamed.status, await streamed.text()]).toEqual([
      413,
      expect.stringContaining("the body is larger than the 1000 bytes allowed"),
    ]);
    const exact = JSON.stringify({ external_id: "x".repeat(1000 - 18) });
    for (const [body, status] of [
      [exact, 200],
      [`${exact} `, 413],
    ] as const) {
      const sent = { method: "POST", body, headers: { "content-type": "application/json" } };
      expect((await fetch(`${url}/v1/sessions/start`, sent)).status).toBe(status);
    }
    const packed = await fetch(`${url}/v1/sessions/start`, {
      method: "POST",
      body: "x",
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
    });
    expect(packed.status).toBe(400);
  });

  it.each([
    ["before its first byte", ""],
    ["with half a preface", "PR"],
    ["in its headers", "POST /v1/sessions/start HTTP/1.1\r\nhost: x\r\n"],
    [
      "in its body",
      "POST /v1/sessions/start HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{",
    ],
    ["in its recording", "POST /v1/audios HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\nRIFF"],
  ])("ends a connection that stalls %s", async (_, sent) => {
    const { url } = await listening({}, { limits: { headerSeconds: 0.3, readSeconds: 0.5, mediaIdleSeconds: 0.3 } });
    const socket = net.connect(Number(new URL(url).port), "127.0.0.1");
    const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    socket.on("error", () => {});
    socket.resume();
    socket.write(sent);
    // A client that trickles single bytes must be treated like a silent one.
    const drip = setInterval(
      () => sent !== "" && socket.writable && !sent.startsWith("PR") && !sent.includes("RIFF") && socket.write("x"),
      100,
    );
    await ended;
    clearInterval(drip);
  });

  it("ends an HTTP/2 connection without a request, even if its client never closes it; others wait longer", async () => {
    const { url } = await listening({}, { limits: { headerSeconds: 0.3 } });
    const used = http2.connect(url);
    await new Promise((resolve) => used.request({ ":path": "/healthz" }).resume().once("close", resolve));
    const silent = net.connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true });
    silent.resume();
    silent.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    await new Promise((resolve) => silent.once("end", resolve));
    // Only a connection that the server has closed completely answers with a reset.
    const reset = new Promise((resolve) => silent.once("error", resolve));
    const drip = setInterval(() => silent.write("x"), 50);
    expect(await reset).toMatchObject({ code: expect.stringMatching(/ECONNRESET|EPIPE/) });
    clearInterval(drip);
    expect(used.destroyed).toBe(false);
    used.destroy();
  });

  it.each([
    ["HTTP", "/v1/sessions/start", "application/json"],
    ["gRPC", "/vendor.biosec.v1.SessionsProcessor/StartSession", "application/grpc"],
    ["gRPC-Web", "/vendor.biosec.v1.SessionsProcessor/StartSession", "application/grpc-web+proto"],
    ["Connect", "/vendor.biosec.v1.SessionsProcessor/StartSession", "application/proto"],
  ])("ends an HTTP/2 stream that sends a byte now and then, over %s", async (_, path, type) => {
    const { url, service } = await listening({}, { limits: { readSeconds: 0.5 } });
    const session = http2.connect(url);
    const stream = session.request({ ":method": "POST", ":path": path, "content-type": type });
    stream.on("error", () => {});
    stream.resume();
    const drip = setInterval(() => stream.writable && stream.write("x"), 100);
    await new Promise<void>((resolve) => stream.once("close", () => resolve()));
    clearInterval(drip);
    session.destroy();
    while (service.dispatcher.running > 0) await new Promise((wake) => setTimeout(wake, 10));
  });

  it("limits the queue: further calls get BUSY and a retry time", async () => {
    const gate = withResolvers();
    const { url } = await listening(
      {
        verify: () => gate.promise.then(() => create(VerifyResponseSchema, { status: { statusCode: StatusCode.OK } })),
      },
      { limits: { concurrentAudio: 1, queuedAudio: 2 } },
    );
    const verify = () =>
      fetch(`${url}/v1/voiceprints/p/verification`, {
        method: "POST",
        body: JSON.stringify({ context }),
        headers: { "content-type": "application/json" },
      });
    const refused: Response[] = [];
    const threeRefused = withResolvers();
    const calls = Array.from({ length: 6 }, async () => {
      const response = await verify();
      if (response.status === 503 && refused.push(response) === 3) threeRefused.resolve(undefined);
      return response;
    });
    await threeRefused.promise;
    expect(refused[0]!.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await refused[0]!.json()).toMatchObject({
      status: { statusCode: "BUSY", retryAfter: expect.stringMatching(/s$/) },
    });
    gate.resolve(undefined);
    const codes = (await Promise.all(calls)).map((response) => response.status).sort();
    expect(codes).toEqual([200, 200, 200, 503, 503, 503]);
  });

  it("limits the rate of one client", async () => {
    const { service } = rehearse({}, { limits: { callsPerSecond: 0.01, callBurst: 2 } });
    const call = () => service.app.request("/v1/sessions/decision");
    expect((await call()).status).toBe(200);
    expect((await call()).status).toBe(200);
    const third = await call();
    expect(third.status).toBe(429);
    expect(await third.json()).toMatchObject({
      status: { statusCode: "RATE_EXCEEDED", retryAfter: expect.any(String) },
    });
  });

  it("answers DEADLINE_EXCEEDED if an operation does not end", async () => {
    const { service } = rehearse({ train: () => new Promise(() => {}) }, { limits: { callSeconds: 0.2 } });
    const response = await service.app.request("/v1/voiceprints/p/training", { method: "POST" });
    expect(response.status).toBe(504);
  });
});

describe("stopping", () => {
  it("answers accepted calls and refuses later ones", async () => {
    const gate = withResolvers();
    const reached = withResolvers();
    const { service, url } = await listening({
      verify: async () => {
        reached.resolve(undefined);
        await gate.promise;
        return create(VerifyResponseSchema, { status: { statusCode: StatusCode.OK } });
      },
    });
    const accepted = fetch(`${url}/v1/voiceprints/p/verification`, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    });
    await reached.promise;
    const stopped = service.stop();
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
    expect((await service.app.request("/readyz")).status).toBe(503);
    gate.resolve(undefined);
    expect((await accepted).status).toBe(200);
    expect(await stopped).toBe(true);
  });

  it("keeps no connection open for requests that would be refused, and waits for no idle one", async () => {
    const gate = withResolvers();
    const reached = withResolvers();
    const { service, url } = await listening(
      {
        verify: async () => {
          reached.resolve(undefined);
          await gate.promise;
          return create(VerifyResponseSchema, { status: { statusCode: StatusCode.OK } });
        },
      },
      { limits: { stopSeconds: 4 } },
    );
    const before = await fetch(`${url}/healthz`);
    expect(before.headers.get("keep-alive"), "a caller that pauses must find its connection open").toBe("timeout=75");
    await before.text();
    const silent = net.connect(Number(new URL(url).port), "127.0.0.1");
    await once(silent, "connect");
    const agent = new http.Agent({ keepAlive: true });
    const call = http.request(`${url}/v1/voiceprints/p/verification`, { agent, method: "POST" }).end("{}");
    const answered = once(call, "response");
    await reached.promise;
    const stopped = service.stop();
    gate.resolve(undefined);
    const [response] = (await answered) as [http.IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
    expect(response.headers.connection).toBe("close");
    // The box keeps an idle connection for 75 seconds, and one without headers for ten.
    expect(await stopped).toBe(true);
    agent.destroy();
  });

  it("refuses callers that have not sent their message, and does not wait for them", async () => {
    const { service, url } = await listening({}, { limits: { stopSeconds: 20 } });
    const session = http2.connect(url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/vendor.biosec.v1.VoiceprintsProcessor/Verify",
      "content-type": "application/grpc",
    });
    stream.write(Buffer.alloc(0));
    stream.resume();
    const ended = once(stream, "trailers");
    const call = http.request(`${url}/v1/voiceprints/p/verification`, { method: "POST" });
    call.on("error", () => {});
    call.flushHeaders();
    const answered = once(call, "response");
    // Of a Connect call the dispatcher counts only the complete ones; that its headers were read is seen here.
    const connect = http.request(`${url}/vendor.biosec.v1.VoiceprintsProcessor/Verify`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-request-id": "unsent", expect: "100-continue" },
    });
    connect.on("error", () => {});
    const refused = once(connect, "response");
    await once(connect, "continue");
    connect.write('{"context":');
    while (service.dispatcher.running < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(await service.stop()).toBe(true);
    expect((await ended)[0]).toMatchObject({ "grpc-status": "14", "retry-after": "1" });
    expect((await answered)[0]).toMatchObject({ statusCode: 503 });
    const [response] = (await refused) as [http.IncomingMessage];
    expect(response).toMatchObject({ statusCode: 503, headers: { "retry-after": "1", "x-request-id": "unsent" } });
    session.destroy();
  });

  it("does not wait forever", async () => {
    const reached = withResolvers();
    const { service, url } = await listening(
      {
        verify: () => {
          reached.resolve(undefined);
          return new Promise(() => {});
        },
      },
      { limits: { stopSeconds: 0.3 } },
    );
    const call = fetch(`${url}/v1/voiceprints/p/verification`, {
      method: "POST",
      body: "{}",
      headers: { "content-type": "application/json" },
    }).catch(() => "broken off");
    await reached.promise;
    expect(await service.stop()).toBe(false);
    expect(await call).toBe("broken off");
  });
});
