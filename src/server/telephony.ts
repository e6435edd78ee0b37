/** Connects telephone lines to a box: their calls use the same operations as all other calls, on behalf of the line. */
import { StatusCode } from "../contract/index.js";
import type { VoiceprintsProcessor } from "../processor/voiceprints-processor.js";
import type { Exchange } from "../telephony/exchange.js";
import type { Line } from "../telephony/line.js";
import { fieldsOf, jsonOf } from "../telephony/port.js";
import { Switchboard } from "../telephony/switchboard.js";
import type { ServerConfig } from "./config.js";
import type { Dispatcher } from "./dispatch.js";
import type { Guard } from "./guard.js";
import { failureAnswer, requestIdOf } from "./http/transcoder.js";
import { requestOf, responseOf } from "./http/web-request.js";
import { type Log, limitedLog } from "./log.js";
import { badRequest, Refusal } from "./refusal.js";
import type { Service } from "./service.js";

export function createTelephony(
  config: ServerConfig,
  parts: {
    readonly processor: VoiceprintsProcessor;
    readonly dispatcher: () => Dispatcher;
    readonly guard: Guard;
    readonly log: Log;
    readonly publicUrl: () => string;
  },
) {
  const switchboard = new Switchboard({
    lines: config.telephony,
    // Refused calls, whose peer nobody may know.
    log: { ...parts.log, info: limitedLog(parts.log).info },
    publicUrl: parts.publicUrl,
    idleSeconds: config.limits.liveIdleSeconds,
    exchangeOf: (line) => exchangeOf(line, parts.processor, parts.dispatcher),
  });
  const announcing = new Map(switchboard.announcing.map((line) => [line.path, line]));
  return {
    switchboard,
    announce(path: string, request: Request, address: string): Promise<Response> | null {
      const line = announcing.get(path);
      if (!line) return null;
      const answer = async () => {
        const caller = await parts.guard.admit(request.headers.get("authorization"), address);
        if (!caller.mayTouch(line.scope))
          throw new Refusal(
            StatusCode.PERMISSION_DENIED,
            "the token does not include the scope of this line; bind its client to that scope",
          );
        const fields = fieldsIn(await requestOf(request, address).bytes(LONGEST_ANNOUNCEMENT));
        // As the announcing program calls the box, so can the telephone system beside it. IPv6 without its brackets.
        const host = new URL(request.url).hostname.replace(/^\[|\]$/g, "");
        return Response.json(await line.announce(fields, host));
      };
      return answer().catch((error: unknown) => {
        const requestId = requestIdOf(request.headers.get("x-request-id") ?? undefined);
        parts.dispatcher().refused({ protocol: "telephony", address, requestId }, error);
        return responseOf(failureAnswer(parts.log, error, requestId));
      });
    },
  };
}

const LONGEST_ANNOUNCEMENT = 65_536;

function fieldsIn(body: Uint8Array): Record<string, string> {
  try {
    return fieldsOf(jsonOf(Buffer.from(body).toString("utf8")));
  } catch {
    throw badRequest("the body must be a JSON object with the fields of the call, such as from and to");
  }
}

/** Each WebSocket line gets a path on the box's port. */
export function routeLines(service: Service, switchboard: Switchboard): void {
  for (const { path, protocols, open } of switchboard.sockets)
    service.sockets.route(path, {
      open: async ({ request, address, requestId }) => {
        try {
          return open(request);
        } catch (error) {
          service.dispatcher.refused({ protocol: "telephony", address, requestId }, error);
          throw error;
        }
      },
      protocol: (offered) => protocols.find((name) => offered.has(name)) ?? false,
    });
}

function exchangeOf(line: Line, processor: VoiceprintsProcessor, dispatcher: () => Dispatcher): Exchange {
  const caller = { id: `line:${line.name}`, mayTouch: (scope: string) => scope === line.scope };
  const { startEngagement, startSession, stopEngagement } = processor;
  const { getGkVoiceprintProfileId, createVoiceprintProfile, listVoiceprintProfiles } = processor;
  return {
    startEngagement,
    startSession,
    stopEngagement,
    getGkVoiceprintProfileId,
    createVoiceprintProfile,
    listVoiceprintProfiles,
    isOfScopesModel: (scopeId, profileId) => processor.isOfScopesModel(scopeId, profileId),
    refused: (code) => dispatcher().countRefused("telephony", code),
    listen: (requests, ended, onIdle) => {
      const requestId = requestIdOf(undefined);
      const call = {
        protocol: "telephony",
        authorization: null,
        caller,
        address: "",
        requestId,
        ended,
        onIdle,
      } as const;
      return dispatcher().live(requests, call, line.name);
    },
  };
}
