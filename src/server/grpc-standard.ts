/**
 * The two services that every gRPC tool expects: health (supervisors, load balancers) and reflection (grpcurl,
 * Postman). Neither needs a token.
 */

import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Writable } from "node:stream";
import { setTimeout } from "node:timers/promises";
import {
  create,
  createFileRegistry,
  type DescFile,
  type DescMethod,
  type DescService,
  fromJsonString,
  type MessageInitShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext } from "@connectrpc/connect";
import { transformDecompressEnvelope, transformSplitEnvelope } from "@connectrpc/connect/protocol";
import {
  Health,
  type HealthCheckRequest,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../contract/gen/grpc/health/v1/health_pb.js";
import {
  ServerReflection,
  type ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../contract/gen/grpc/reflection/v1/reflection_pb.js";
import { StatusCode } from "../contract/index.js";
import { SERVICES } from "../contract/operations.js";
import { asStatusError, connectErrorOf } from "./call-errors.js";
import {
  binaryTypeOf,
  encodingOf,
  FINE,
  framed,
  GRPC,
  HEAD_BYTES,
  messageOf,
  trailersOf,
  unexpectedFlags,
} from "./grpc-wire.js";
import { requestIdOf } from "./http/transcoder.js";
import { headerOf, type NodeRequest } from "./listen.js";
import { Refusal } from "./refusal.js";

/** Older tools (Python's grpcio-reflection) ask for reflection under this name; the messages are the same. */
const EarlierReflection = createFileRegistry(
  fromJsonString(
    FileDescriptorProtoSchema,
    toJsonString(FileDescriptorProtoSchema, ServerReflection.file.proto).replace(/(grpc.reflection.v1)\b/g, "$1alpha"),
  ),
  () => undefined,
).getService("grpc.reflection.v1alpha.ServerReflection")!;

const OFFERED: readonly DescService[] = [...SERVICES, Health, ServerReflection, EarlierReflection];
const NAMES = new Set(["", ...OFFERED.map((service) => service.typeName)]);

export interface HealthParts {
  /** Resolves when store and engine can work; rejects otherwise. */
  readonly ready: () => Promise<void>;
  readonly stopping: () => boolean;
}

const LOOK_EVERY_MS = 1000;
const MAX_WATCHERS = 100;
/** Anybody may ask, and an error is sent in a header: longer names are cut. */
const LONGEST_NAME = 200;

/** These services take names only, and need no token: 25 bytes could be decompressed to the largest message of the contract. */
export const LONGEST_STANDARD_MESSAGE = 4096;

async function statusOf({ ready, stopping }: HealthParts): Promise<ServingStatus> {
  if (stopping()) return ServingStatus.NOT_SERVING;
  return ready().then(
    () => ServingStatus.SERVING,
    () => ServingStatus.NOT_SERVING,
  );
}

export const healthCheck =
  (parts: HealthParts) =>
  async ({ service }: HealthCheckRequest): Promise<{ status: ServingStatus }> => {
    if (!NAMES.has(service))
      throw new Refusal(StatusCode.NOT_FOUND, `unknown service "${service.slice(0, LONGEST_NAME)}"`);
    return { status: await statusOf(parts) };
  };

export function addHealth(router: ConnectRouter, parts: HealthParts): void {
  const { stopping } = parts;
  const check = healthCheck(parts);
  let watchers = 0;

  router.service(Health, {
    check: (request: HealthCheckRequest) =>
      check(request).catch((error: unknown) => Promise.reject(connectErrorOf(asStatusError(error)))),
    async *watch({ service }: HealthCheckRequest, { signal }: HandlerContext) {
      if (watchers >= MAX_WATCHERS)
        throw new ConnectError(
          `at most ${MAX_WATCHERS} clients may watch at a time; use Check instead`,
          Code.ResourceExhausted,
        );
      watchers++;
      try {
        if (!NAMES.has(service)) yield { status: ServingStatus.SERVICE_UNKNOWN };
        for (let said: ServingStatus | null = null; NAMES.has(service) && !signal.aborted; ) {
          const status = await statusOf(parts);
          if (status !== said) yield { status };
          said = status;
          // A watcher must not delay the shutdown.
          if (stopping()) return;
          await setTimeout(LOOK_EVERY_MS, null, { signal }).catch(() => {});
        }
      } finally {
        watchers--;
      }
    },
  });
}

const INFO: DescMethod = ServerReflection.method.serverReflectionInfo;

type MessageResponse = NonNullable<
  Extract<MessageInitShape<typeof ServerReflectionResponseSchema>, { $typeName?: never }>["messageResponse"]
>;

export type Reflection = ReturnType<typeof createReflection>;

export function createReflection() {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const visit = (file: DescFile): void => {
    const name = `${file.name}.proto`;
    if (files.has(name)) return;
    files.set(name, file);
    for (const symbol of symbolsIn(file)) symbols.set(symbol, file);
    file.dependencies.forEach(visit);
  };
  for (const service of OFFERED) visit(service.file);
  /** Made once: anybody may ask as often as they like, and to write a file and its imports takes milliseconds. */
  const made = new Map<DescFile, MessageResponse>();
  const services: MessageResponse = {
    case: "listServicesResponse",
    value: { service: OFFERED.map(({ typeName: name }) => ({ name })) },
  };

  const answered = (file: DescFile | undefined, asked: string): MessageResponse => {
    if (!file)
      return { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage: `${asked} not found` } };
    const answer = made.get(file) ?? {
      case: "fileDescriptorResponse",
      value: { fileDescriptorProto: withImports(file).map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto)) },
    };
    made.set(file, answer);
    return answer;
  };

  const answer = ({ messageRequest }: ServerReflectionRequest): MessageResponse => {
    switch (messageRequest.case) {
      case "listServices":
        return services;
      case "fileByFilename":
        return answered(files.get(messageRequest.value), `file ${messageRequest.value}`);
      case "fileContainingSymbol":
        return answered(symbols.get(messageRequest.value), `symbol ${messageRequest.value}`);
      default:
        return {
          case: "errorResponse",
          value: { errorCode: Code.Unimplemented, errorMessage: "extensions are not supported" },
        };
    }
  };

  async function* serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
    for await (const originalRequest of requests)
      yield { validHost: originalRequest.host, originalRequest, messageResponse: answer(originalRequest) };
  }

  const written = new WeakMap<MessageResponse, Uint8Array>();
  const bytesOf = (fields: MessageInitShape<typeof ServerReflectionResponseSchema>) =>
    toBinary(ServerReflectionResponseSchema, create(ServerReflectionResponseSchema, fields));

  /** The frame of an answer in two parts, because the second is long and always the same. */
  const frameOf = (message: Uint8Array): [Buffer, Uint8Array] => {
    const originalRequest = messageOf(INFO, message) as ServerReflectionRequest;
    const messageResponse = answer(originalRequest);
    const last = written.get(messageResponse) ?? bytesOf({ messageResponse });
    written.set(messageResponse, last);
    const first = framed(0, bytesOf({ validHost: originalRequest.host, originalRequest }));
    first.writeUInt32BE(first.length - HEAD_BYTES + last.length, 1);
    return [first, last];
  };

  const paths = new Set([ServerReflection, EarlierReflection].map(({ typeName }) => `/${typeName}/${INFO.name}`));

  return {
    /** For calls with messages of another form. */
    add(router: ConnectRouter): void {
      router.service(ServerReflection, { serverReflectionInfo });
      router.service(EarlierReflection as typeof ServerReflection, { serverReflectionInfo });
    },
    handles: (request: NodeRequest): request is Http2ServerRequest =>
      "stream" in request &&
      binaryTypeOf(request) === GRPC &&
      encodingOf(request) !== undefined &&
      paths.has(request.url),
    async handle(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
      const { stream } = request;
      const requestId = requestIdOf(headerOf(request, "x-request-id"));
      let trailers: Readonly<Record<string, string>> = FINE;
      response.writeHead(200, { "content-type": GRPC, "x-request-id": requestId });
      try {
        // The trailers are sent on the same stream.
        const body = stream.iterator({ destroyOnReturn: false });
        const messages = transformSplitEnvelope(LONGEST_STANDARD_MESSAGE)(body);
        const compression = encodingOf(request);
        const read = compression ? transformDecompressEnvelope(compression, LONGEST_STANDARD_MESSAGE) : null;
        for await (const { flags, data } of read?.(messages) ?? messages) {
          if (!compression && flags !== 0) throw unexpectedFlags(flags);
          for (const part of frameOf(data)) response.write(part);
          if (stream.writableNeedDrain) await drained(stream);
        }
      } catch (error) {
        const refused = asStatusError(error);
        refused.status.requestId = requestId;
        trailers = trailersOf(refused);
      }
      response.addTrailers(trailers);
      response.end();
    },
  };
}

/** Also if it closes before. */
function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off("drain", done).off("close", done);
      resolve();
    };
    stream.once("drain", done).once("close", done);
  });
}

/** The full names of everything that a file declares. */
function* symbolsIn(file: DescFile): Iterable<string> {
  for (const declared of nestedTypes(file)) {
    const { kind, typeName } = declared;
    yield typeName;
    if (kind === "service") for (const { name } of declared.methods) yield `${typeName}.${name}`;
    if (kind === "message")
      for (const { name } of [...declared.fields, ...declared.oneofs]) yield `${typeName}.${name}`;
    // Values stand beside their enum, not in it.
    if (kind === "enum") for (const { name } of declared.values) yield typeName.replace(/[^.]+$/, name);
  }
}

/** A file and everything it imports, each once. */
function withImports(file: DescFile): DescFile[] {
  const found = new Set<DescFile>();
  const visit = (one: DescFile): void => {
    if (found.has(one)) return;
    found.add(one);
    one.dependencies.forEach(visit);
  };
  visit(file);
  return [...found];
}
