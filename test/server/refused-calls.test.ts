/** A caller that is not admitted is refused before the RPC framework is entered; the answer is the framework's. */
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { afterEach, describe, expect, it } from "vitest";
import { StatusCode } from "../../src/contract/index.js";
import { type Guard, openGuard } from "../../src/server/guard.js";
import { Refusal } from "../../src/server/refusal.js";
import { rehearse } from "./rehearsal.js";

const refusal = () =>
  new Refusal(StatusCode.NOT_AUTHORIZED, "an access token is required: 100 %", {
    headers: { "www-authenticate": 'Bearer realm="vivavoce", scope="bio"' },
  });
const refusing = () => {
  throw refusal();
};
const closed: Guard = { admit: async () => refusing() };

const started: { stop(): Promise<unknown> }[] = [];
async function listening(...parts: Parameters<typeof rehearse>) {
  const rehearsal = rehearse(...parts);
  await rehearsal.service.listen();
  started.push(rehearsal.service);
  return { ...rehearsal, url: rehearsal.service.url };
}
afterEach(async () => {
  await Promise.all(started.splice(0).map((service) => service.stop()));
});

interface Answer {
  readonly status: number;
  readonly headers: Record<string, unknown>;
  readonly trailers: Record<string, unknown>;
  readonly body: string;
}

/** Without what belongs to the connection or the time of day. */
const plain = ({ date: _, connection: _c, "keep-alive": _k, ...headers }: Record<string, unknown>) => headers;

async function overHttp1(url: string, headers: http.OutgoingHttpHeaders, body: Buffer): Promise<Answer> {
  const request = http.request(url, { method: "POST", headers, agent: false }).end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const chunks = await response.toArray();
  return {
    status: response.statusCode!,
    headers: plain(response.headers),
    trailers: response.trailers,
    body: Buffer.concat(chunks).toString("latin1"),
  };
}

async function overHttp2(url: string, headers: http.OutgoingHttpHeaders, body: Buffer): Promise<Answer> {
  const session = http2.connect(url);
  const stream = session.request({ ":method": "POST", ":path": new URL(url).pathname, ...headers });
  let trailers: Record<string, unknown> = {};
  stream.on("trailers", (sent) => {
    trailers = { ...sent };
  });
  stream.end(body);
  const [{ ":status": status, ...answered }] = (await once(stream, "response")) as [http2.IncomingHttpHeaders];
  const chunks = await stream.toArray();
  session.destroy();
  return {
    status: Number(status),
    headers: plain({ ...answered }),
    trailers,
    body: Buffer.concat(chunks).toString("latin1"),
  };
}

/** The trailers of gRPC-Web. Clients decode what is escaped, needed or not. */
function trailersIn(body: string): string {
  const frame = Buffer.from(body, "latin1");
  expect([frame[0], frame.readUInt32BE(1)]).toEqual([0x80, frame.length - 5]);
  return body.slice(5).replace(/(?<=grpc-message: ).*/, decodeURIComponent);
}

const EMPTY_FRAME = Buffer.alloc(5);
const START = "/vendor.biosec.v1.SessionsProcessor/StartSession";
const UPLOAD = "/vendor.biosec.v1.MediaProcessor/AddMediaSegment";
const LISTEN = "/vendor.biosec.v1.LiveProcessor/Listen";

const TYPES = {
  "application/grpc": [START, UPLOAD, LISTEN],
  "application/grpc+json": [START, UPLOAD, LISTEN],
  "application/grpc-web": [START, UPLOAD, LISTEN],
  "application/grpc-web+json": [START, UPLOAD, LISTEN],
  "application/json": [START],
  "application/proto": [START],
  "application/connect+json": [UPLOAD, LISTEN],
  "application/connect+proto": [UPLOAD, LISTEN],
};
const bodyOf = (type: string): Buffer => {
  if (type === "application/json") return Buffer.from("{}");
  if (type === "application/proto") return Buffer.alloc(0);
  return type.endsWith("+json") ? Buffer.from("\0\0\0\0\x02{}") : EMPTY_FRAME;
};

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
] as const)("over %s", (version, ask) => {
  it.each(
    Object.entries(TYPES).flatMap(([type, paths]) =>
      paths.filter((path) => version === "HTTP/2" || path !== LISTEN).map((path) => [type, path] as const),
    ),
  )("%s to %s: the same answer as from an operation that refuses", async (type, path) => {
    const operations = { startSession: refusing, addMediaSegment: refusing, listen: refusing };
    const cors = { cors: { origins: ["https://bank.example"] } };
    const answers: Answer[] = [];
    const lines: unknown[] = [];
    for (const guard of [openGuard, closed]) {
      const { url, service, logged } = await listening(operations, cors, guard);
      const headers = {
        "content-type": type,
        "x-request-id": "r-1",
        origin: "https://bank.example",
        // The framework takes calls that may be compressed.
        ...(guard === openGuard && { "grpc-encoding": "gzip" }),
      };
      answers.push(await ask(url + path, headers, bodyOf(type)));
      await service.stop();
      const { client: _, address: _a, milliseconds: _m, time: _t, ...line } = logged.find(({ status }) => status) ?? {};
      lines.push(line);
      const metrics = await service.metrics.text();
      expect(metrics).toMatch(/vivavoce_call_seconds_count\{.*status="NOT_AUTHORIZED"\} 1/);
    }
    const [framework, lean] = answers.map((answer) => ({
      ...answer,
      body: type.includes("grpc-web") ? trailersIn(answer.body) : answer.body,
    }));
    expect(lean).toEqual(framework);
    expect(lines[1]).toEqual(lines[0]);
    expect(JSON.stringify(lean)).toContain("an access token is required: 100 %");
    expect(lean!.headers["access-control-allow-origin"]).toBe("https://bank.example");
  });
});

it("a caller without permission is told so, whatever else is wrong with the call", async () => {
  const { url } = await listening({}, {}, closed);
  const headers = { "content-type": "application/json", "connect-timeout-ms": "soon" };
  expect((await overHttp1(url + START, headers, Buffer.from("{}"))).status).toBe(401);
});
