/** A service whose operations are written by the test, to test everything in front of them. */
import { create, type Message } from "@bufbuild/protobuf";
import { StatusCode } from "../../src/contract/index.js";
import { type LiveOperations, METHODS, type OperationOptions, type Operations } from "../../src/contract/operations.js";
import { configSchema, type ServerConfigInput } from "../../src/server/config.js";
import { type Guard, openGuard } from "../../src/server/guard.js";
import { jsonLog } from "../../src/server/log.js";
import { Service } from "../../src/server/service.js";
import { countOfCall, fieldRates } from "../../src/voiceprint/field-rates.js";

type CallOptions = Required<Pick<OperationOptions, "signal" | "requestId">>;

export type Answer = (request: never, options: CallOptions) => Promise<Message> | Message;

export interface Rehearsal {
  readonly service: Service;
  /** Requests that reached an operation, in order. */
  readonly seen: { readonly operation: string; readonly request: unknown }[];
  readonly logged: Record<string, unknown>[];
}

export function rehearse(
  answers: Readonly<Record<string, Answer>> = {},
  config: Partial<ServerConfigInput> = {},
  guard: Guard = openGuard,
  ready: () => Promise<void> = async () => {},
): Rehearsal {
  const seen: { operation: string; request: unknown }[] = [];
  const logged: Record<string, unknown>[] = [];
  const operations = Object.fromEntries(
    METHODS.map((method) => [
      method.localName,
      // A live call is answered by a stream, not by a promise of one.
      method.methodKind === "bidi_streaming"
        ? answers[method.localName]
        : async (request: never, options: CallOptions) => {
            if (method.methodKind === "unary") seen.push({ operation: method.name, request });
            const answer = answers[method.localName];
            if (answer) return answer(request, options);
            if (method.methodKind === "client_streaming") {
              for await (const message of request as AsyncIterable<unknown>)
                seen.push({ operation: method.name, request: message });
            }
            return create(method.output, { status: { statusCode: StatusCode.OK } } as never);
          },
    ]),
  ) as unknown as Operations & LiveOperations;
  const service = new Service(configSchema.parse({ port: 0, store: "memory", ...config }), {
    operations,
    guard,
    log: jsonLog("info", (line) => logged.push(JSON.parse(line))),
    version: "0.0.0",
    ready,
    fieldRates: async () =>
      fieldRates(
        "watchlist",
        [300, 10, 0].map((exceeded) => ({ ...countOfCall(1000, exceeded), calls: 500 })),
      ),
  });
  return { service, seen, logged };
}
