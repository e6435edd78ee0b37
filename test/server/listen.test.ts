import { type EventEmitter, once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import http, { type ServerResponse } from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import tls from "node:tls";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test, vi } from "vitest";
import { type ListenOptions, listen, type NodeHandler, type NodeResponse } from "../../src/server/listen.js";
import { writeCertificate } from "./certificate.js";

/** Long enough that a busy machine does not exceed it. */
const patient = { host: "127.0.0.1", port: 0, headerSeconds: 30, readSeconds: () => 30, refused: () => {} };

/** Also with an error, such as a reset, for which `once` would reject. */
const closing = (connection: EventEmitter) => new Promise((resolve) => connection.once("close", resolve));

test("a client whose request is complete may wait for a response longer than the time limit for sending", async () => {
  const port = await listen({
    ...patient,
    readSeconds: () => 0.1,
    handler: (_, response) => void setTimeout(500).then(() => response.end("answered")),
    upgrade: (_, socket) => socket.destroy(),
  });
  const url = `http://127.0.0.1:${port.port}`;
  try {
    for (const method of ["GET", "DELETE"]) expect(await (await fetch(url, { method })).text()).toBe("answered");
    const session = http2.connect(url);
    const stream = session.request({ ":method": "DELETE" });
    let text = "";
    for await (const chunk of stream) text += chunk;
    expect(text).toBe("answered");
    session.close();
  } finally {
    await port.close();
  }
});

test("a request of HTTP/1.1 may have as many headers as one of HTTP/2", async () => {
  const port = await listen({
    ...patient,
    handler: (_, response) => void response.end("answered"),
    upgrade: (_, socket) => socket.end("upgraded"),
  });
  const ask = async (headers: number, ...more: string[]) => {
    const socket = net.connect(port.port, "127.0.0.1");
    const lines = Array.from({ length: headers - 2 - more.length }, (_, i) => `x-${i}: 1`);
    const connection = more.length > 0 ? "upgrade" : "close";
    socket.write(["GET / HTTP/1.1", ...lines, ...more, "Host: box", `Connection: ${connection}`, "", ""].join("\r\n"));
    return Buffer.concat(await socket.toArray()).toString();
  };
  expect(await ask(128)).toMatch(/^HTTP\/1\.1 200 .*answered/s);
  expect(await ask(129)).toMatch(/^HTTP\/1\.1 431 .*a request may have at most 128 headers/s);
  expect(await ask(128, "Upgrade: websocket")).toBe("upgraded");
  expect(await ask(129, "Upgrade: websocket")).toMatch(/^HTTP\/1\.1 431 /);
  await port.close();
});

test("a connection that cannot be accepted is reported, and the next one is served", async () => {
  const made = vi.spyOn(net, "createServer");
  const errors: Error[] = [];
  const port = await listen({
    ...patient,
    handler: (_, response) => void response.end("answered"),
    upgrade: (_, socket) => socket.destroy(),
    refused: (error) => errors.push(error),
  });
  const server = made.mock.results[0]!.value as net.Server;
  made.mockRestore();
  // As Node reports it.
  const fault = new Error("accept ENOBUFS");
  server.emit("error", fault);
  expect(errors).toEqual([fault]);
  expect(await (await fetch(`http://127.0.0.1:${port.port}`)).text()).toBe("answered");
  await port.close();
});

test("a request that also offers HTTP/2 is answered as if it did not, with its body, more than once on a connection", async () => {
  const seen: Record<string, unknown>[] = [];
  const port = await listen({
    ...patient,
    handler: async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const { url, headers } = request;
      seen.push({ url, headers, body });
      response.end("answered");
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const socket = net.connect(port.port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  const offer = "Host: box\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n";
  for (let n = 1; n <= 12; n++) {
    socket.write(`POST /${n} HTTP/1.1\r\n${offer}Content-Length: 5\r\n\r\nhe`);
    socket.write("llo");
    await expect.poll(() => text.match(/answered/g)).toHaveLength(n);
  }
  socket.write(`GET /last HTTP/1.1\r\n${offer.replace("Upgrade,", "close, Upgrade,")}\r\n`);
  await closing(socket);
  expect(seen).toHaveLength(13);
  const headers = { host: "box", connection: "" };
  expect(seen[11]).toEqual({ url: "/12", headers: { ...headers, "content-length": "5" }, body: "hello" });
  expect(seen[12]).toEqual({ url: "/last", headers: { ...headers, connection: "close" }, body: "" });
  await port.close();
});

test.each(["cleartext", "TLS"])(
  "a client may have a thousand calls at once over HTTP/2, each with 256 KB on its way, over %s",
  async (transport) => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
    const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
    const ca = files && (await readFile(files.cert));
    const port = await listen({
      ...patient,
      tls: files,
      handler: (_, response) => response.end(),
      upgrade: (_, socket) => socket.destroy(),
    });
    const session = http2.connect(`${ca ? "https" : "http"}://127.0.0.1:${port.port}`, { ca });
    await once(session, "remoteSettings");
    expect(session.remoteSettings).toMatchObject({ maxConcurrentStreams: 1000, initialWindowSize: 2 ** 18 });
    session.close();
    await port.close();
    await rm(folder, { recursive: true });
  },
);

test.each(["cleartext", "TLS"])("an idle connection is kept for 75 seconds, over %s", async (transport) => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
  const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
  const port = await listen({
    ...patient,
    tls: files,
    handler: (_, response) => response.end("answered"),
    upgrade: (_, socket) => socket.destroy(),
  });
  const socket = askOver(port.port, files && (await readFile(files.cert)), "/", "Connection: keep-alive");
  const [head] = await once(socket, "data");
  expect(String(head)).toContain("Keep-Alive: timeout=75");
  const closed = closing(socket);
  await port.close();
  await closed;
  await rm(folder, { recursive: true });
});

test("a request that comes while the port closes, on a connection that is busy, is answered as the last", async () => {
  let first: NodeResponse | null = null;
  const port = await listen({
    ...patient,
    handler: (request, response) => {
      if (request.url === "/next") response.end("next");
      else first = response;
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const busy = askOver(port.port, undefined, "/first", "Connection: keep-alive");
  let text = "";
  busy.on("data", (chunk) => {
    text += chunk;
  });
  await expect.poll(() => first).not.toBeNull();
  busy.write("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  const closed = port.close();
  first!.end("first");
  await closing(busy);
  expect(text).toContain("first");
  expect(text).toContain("Connection: close");
  await closed;
});

test("a port that is taken is reported", async () => {
  const options = { ...patient, handler: () => {}, upgrade: () => {} };
  const port = await listen(options);
  await expect(listen({ ...options, port: port.port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  await port.close();
});

test("three bytes that may be the beginning of HTTP/2 keep a connection no longer than no bytes", async () => {
  const port = await listen({
    ...patient,
    headerSeconds: 0.2,
    handler: (_, response) => response.end(),
    upgrade: (_, socket) => socket.destroy(),
  });
  const socket = net.connect(port.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  socket.write("PRI");
  await closing(socket);
  await port.close();
});

test("over TLS, a client that begins no handshake, or no request, is cut off after the time limit for headers", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
  const files = await writeCertificate(folder, "box");
  const port = await listen({
    ...patient,
    headerSeconds: 0.5,
    tls: files,
    handler: (_, response) => response.end(),
    upgrade: (_, socket) => socket.destroy(),
  });
  const silent = net.connect(port.port, "127.0.0.1");
  const begun = tls.connect({ port: port.port, host: "127.0.0.1", ca: await readFile(files.cert) });
  for (const socket of [silent, begun]) socket.on("error", () => {}).resume();
  begun.write("GET / HTTP/1.1\r\n");
  await Promise.all([silent, begun].map(closing));
  await port.close();
  await rm(folder, { recursive: true });
});

test("headers and empty DATA frames without an end are cut off after the time limit, and do not delay a stop", async () => {
  const asked: string[] = [];
  const port = await listen({
    ...patient,
    readSeconds: () => 0.3,
    // Answers when the request is complete, as every operation does.
    handler: (request, response) => {
      asked.push(request.url ?? "");
      request.resume();
      request.once("end", () => response.end());
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const session = http2.connect(`http://127.0.0.1:${port.port}`);
  session.on("error", () => {});
  const stream = session.request({ ":method": "POST", ":path": "/x", "content-type": "application/grpc" });
  stream.on("error", () => {});
  stream.resume();
  const sending = setInterval(() => stream.destroyed || stream.write(Buffer.alloc(0)), 20);
  await closing(stream);
  clearInterval(sending);
  expect(asked).toEqual(["/x"]);
  await port.close();
  session.destroy();
});

test("a body that does not arrive in time is cut off over HTTP/1.1", async () => {
  const port = await listen({
    ...patient,
    readSeconds: () => 0.2,
    handler: (request) => void request.resume(),
    upgrade: (_, socket) => socket.destroy(),
  });
  const socket = net.connect(port.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.resume();
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  const sending = setInterval(() => socket.destroyed || socket.write("x"), 20);
  await closing(socket);
  clearInterval(sending);
  await port.close();
});

/** Opens a connection, encrypted if `ca` is given, and asks for `path` or for a WebSocket there. */
function askOver(port: number, ca: Buffer | undefined, path: string, headers = "Connection: close") {
  const address = { port, host: "127.0.0.1" };
  const socket = ca ? tls.connect({ ...address, ca }) : net.connect(address);
  socket.on("error", () => {});
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`);
  return socket;
}

test.each(["cleartext", "TLS"])("a call over a WebSocket goes on while the port closes, over %s", async (transport) => {
  const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
  const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
  const port = await listen({
    ...patient,
    tls: files,
    handler: (_, response) => response.end(),
    upgrade: (_, socket) => void socket.write("upgraded"),
  });
  const upgrade = "Connection: Upgrade\r\nUpgrade: websocket";
  const socket = askOver(port.port, files && (await readFile(files.cert)), "/call", upgrade);
  await once(socket, "data");
  const closed = port.close();
  const ended = closing(socket).then(() => "ended");
  expect(await Promise.race([ended, closed, setTimeout(300, "open")])).toBe("open");
  socket.destroy();
  await closed;
  await rm(folder, { recursive: true });
});

/** More than the buffers of a connection hold. */
const large = Buffer.alloc(64 * 1024 * 1024);

test.each(["cleartext", "TLS"])(
  "a client that does not read its response is cut off, one that waits for a response is not, over %s",
  async (transport) => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
    const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
    const ca = files && (await readFile(files.cert));
    const closed: Promise<unknown>[] = [];
    const port = await listen({
      ...patient,
      tls: files,
      idleSeconds: 0.3,
      handler: (request, response) => {
        if (request.url === "/late") return void setTimeout(1000).then(() => response.end("answered"));
        closed.push(once(response, "close"));
        response.end(large);
      },
      upgrade: (_, socket) => socket.destroy(),
    });
    const ask = (path: string) => askOver(port.port, ca, path);
    const textOf = async (chunks: AsyncIterable<Buffer>) => {
      let text = "";
      for await (const chunk of chunks) text += chunk;
      return text;
    };
    expect(await textOf(ask("/late"))).toContain("answered");
    const socket = ask("/large");
    const session = http2.connect(`${ca ? "https" : "http"}://127.0.0.1:${port.port}`, { ca });
    session.on("error", () => {});
    expect(await textOf(session.request({ ":path": "/late" }))).toBe("answered");
    const unread = session.request({ ":path": "/large" });
    unread.on("error", () => {});
    await once(unread, "response");
    await expect.poll(() => closed.length).toBe(2);
    await Promise.all(closed);
    // Nor is one of HTTP/2 kept that asks for nothing more.
    const other = http2.connect(`${ca ? "https" : "http"}://127.0.0.1:${port.port}`, { ca });
    other.on("error", () => {});
    const gone = closing(other);
    expect(await textOf(other.request({ ":path": "/late" }))).toBe("answered");
    await gone;
    socket.destroy();
    session.destroy();
    await port.close();
    await rm(folder, { recursive: true });
  },
);

/** Of HTTP/2. */
const frame = (type: number, flags: number, stream: number, content: readonly number[]) =>
  Buffer.from([0, 0, content.length, type, flags, 0, 0, 0, stream, ...content]);
const PREFACE = Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frame(4, 0, 0, [])]);

describe.each(["cleartext", "TLS"])("a client that breaks the rules of HTTP/2 and leaves, over %s", (transport) => {
  /** Resolves when the request was handled and Node has sent the last frame of this connection. */
  async function breakRules(handler: NodeHandler, options: Partial<ListenOptions>) {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
    const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
    const ca = files && (await readFile(files.cert));
    const port = await listen({
      ...patient,
      ...options,
      tls: files,
      handler,
      upgrade: (_, socket) => socket.destroy(),
    });
    await rm(folder, { recursive: true });
    const address = { port: port.port, host: "127.0.0.1" };
    const socket = ca ? tls.connect({ ...address, ca, ALPNProtocols: ["h2"] }) : net.connect(address);
    socket.on("error", () => {});
    // GET, http, /, the host. Its stream ends with it, so that data must not follow.
    socket.write(Buffer.concat([PREFACE, frame(1, 5, 1, [0x82, 0x86, 0x84, 0x41, 1, 0x78]), frame(0, 0, 1, [0])]));
    let received = "";
    for await (const chunk of socket) {
      received += chunk;
      if (received.includes("half-closed")) break;
    }
    socket.destroy();
    return port;
  }

  test("does not delay a stop, though its request was not answered", async () => {
    const port = await breakRules(() => {}, { pingSeconds: 0.2 });
    await port.close();
  });

  test("does not keep its connection, though its response was complete", async () => {
    let ended: Promise<unknown> | null = null;
    const port = await breakRules(
      (_, response) => {
        ended = closing((response as http2.Http2ServerResponse).stream.session!);
        setTimeout(100).then(() => response.end());
      },
      { idleSeconds: 0.3, pingSeconds: 0.2 },
    );
    await ended;
    await port.close();
  });
});

test("clients of HTTP/1.1 that read nothing do not delay a stop; one whose response is late still gets it", async () => {
  let asked = 0;
  let answer = () => {};
  let cutOff: Promise<unknown> | null = null;
  const port = await listen({
    ...patient,
    pingSeconds: 0.2,
    handler: ({ url }, response) => {
      asked++;
      if (url === "/large") {
        cutOff = once(response, "close");
        // A file whose next part is sent when this one was read.
        (response as ServerResponse).write(large);
      } else answer = () => response.end("answered");
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const late = askOver(port.port, undefined, "/late");
  let text = "";
  late.on("data", (chunk: Buffer) => {
    text += chunk;
  });
  const unread = askOver(port.port, undefined, "/large").pause();
  await expect.poll(() => asked).toBe(2);
  const closed = port.close();
  await cutOff;
  const answered = closing(late);
  answer();
  await Promise.all([closed, answered]);
  unread.destroy();
  expect(text).toContain("answered");
});

test.each(["cleartext", "TLS"])(
  "a stop lets a client of HTTP/1.1 read the rest of its response, over %s",
  async (transport) => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
    const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
    let asked = false;
    const port = await listen({
      ...patient,
      tls: files,
      handler: (_, response) => {
        asked = true;
        response.end(large);
      },
      upgrade: (_, socket) => socket.destroy(),
    });
    const socket = askOver(port.port, files && (await readFile(files.cert)), "/", "Connection: keep-alive").pause();
    await rm(folder, { recursive: true });
    await expect.poll(() => asked).toBe(true);
    const closed = port.close();
    let received = 0;
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    socket.resume();
    await Promise.all([closed, closing(socket)]);
    expect(received).toBeGreaterThan(large.length);
  },
);

test("clients of HTTP/2 that read nothing, or leave their side open, do not delay a stop", async () => {
  let asked = 0;
  const port = await listen({
    ...patient,
    pingSeconds: 0.2,
    handler: (_, response) => {
      asked++;
      response.end(large);
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const ask = () => {
    const socket = net.connect({ port: port.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => {});
    // Windows for the whole response, so that it waits in the connection. Then GET, http, /, the host.
    const windows = [frame(4, 0, 0, [0, 4, 0x7f, 255, 255, 255]), frame(8, 0, 0, [0x70, 0, 0, 0])];
    socket.write(Buffer.concat([PREFACE, ...windows, frame(1, 5, 1, [0x82, 0x86, 0x84, 0x41, 1, 0x78])]));
    return socket;
  };
  const clients = [ask().pause(), ask().resume()];
  await expect.poll(() => asked).toBe(2);
  await port.close();
  for (const client of clients) client.destroy();
});

test.each([
  ["cleartext", "websocket"],
  ["cleartext", "h2c"],
  ["TLS", "websocket"],
])(
  "a connection that asks for another protocol before it has its response is closed, over %s to %s",
  async (transport, protocol) => {
    const folder = await mkdtemp(join(tmpdir(), "vivavoce-listen-"));
    const files = transport === "TLS" ? await writeCertificate(folder, "box") : undefined;
    const asked: (string | undefined)[] = [];
    const port = await listen({
      ...patient,
      tls: files,
      handler: ({ url }) => asked.push(url),
      upgrade: ({ url }) => asked.push(url),
    });
    const socket = askOver(port.port, files && (await readFile(files.cert)), "/slow", "Connection: keep-alive");
    await expect.poll(() => asked).toEqual(["/slow"]);
    socket.write(`GET /next HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`);
    await closing(socket.resume());
    expect(asked).toEqual(["/slow"]);
    await port.close();
    await rm(folder, { recursive: true });
  },
);

test("a request over HTTP/2 with `Expect: 100-continue` is told to go on, and one that is given up at once ends nothing", async () => {
  const port = await listen({
    ...patient,
    handler: (request, response) => void request.on("end", () => response.end("answered")).resume(),
    upgrade: (_, socket) => socket.destroy(),
  });
  // POST, http, /, the host and the header (RFC 7541 appendix A).
  const headers = [0x83, 0x86, 0x84, 0x41, 1, 0x78, 0x0f, 35 - 15, 12, ...Buffer.from("100-continue")];
  const socket = net.connect(port.port, "127.0.0.1");
  socket.write(
    Buffer.concat([
      PREFACE,
      frame(1, 4, 1, headers),
      frame(3, 0, 1, [0, 0, 0, 8]),
      frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
    ]),
  );
  try {
    // The answer to the ping: the frames before it were read.
    await vi.waitUntil(() => socket.read()?.includes(frame(6, 1, 0, [0, 0, 0, 0, 0, 0, 0, 0])), { timeout: 20_000 });
    const session = http2.connect(`http://127.0.0.1:${port.port}`);
    const stream = session.request({ ":method": "POST", expect: "100-continue" });
    await once(stream, "continue");
    stream.end("body");
    let text = "";
    for await (const chunk of stream) text += chunk;
    expect(text).toBe("answered");
    session.close();
  } finally {
    socket.destroy();
    await port.close();
  }
});

/** A port that refuses everything without reading it, and the connections whose requests it refused. */
async function refusing() {
  const connections = new Set<net.Socket>();
  const port = await listen({
    ...patient,
    handler: (request, response) => {
      connections.add(request.socket as net.Socket);
      response.statusCode = 401;
      response.end("refused");
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  return { port, connections };
}

const megabyte = 1 << 20;

/** Sends a request of 1 MB at once. Resolves when its answer was received. */
async function posting(port: number, headers = "", isChunked = false) {
  const socket = net.connect(port, "127.0.0.1");
  socket.on("error", () => {});
  const length = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${megabyte}`;
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${length}\r\n${headers}\r\n`);
  const body = Buffer.alloc(megabyte);
  for (const piece of isChunked ? ["100000\r\n", body, "\r\n0\r\n\r\n"] : [body]) socket.write(piece);
  const [answer] = (await once(socket, "data")) as [Buffer];
  return { socket, answer: answer.toString() };
}

test.each([
  ["of a known length", false],
  ["in chunks", true],
])(
  "of refused requests %s, all clients together have 16 MB read and 1 MB a second, then one piece of each; all see the answer",
  async (_, isChunked) => {
    const { port, connections } = await refusing();
    const [began, requests] = [performance.now(), 160];
    const posted = Array.from({ length: requests }, (_, i) =>
      posting(port.port, i % 2 === 0 ? "Connection: close\r\n" : "", isChunked),
    );
    const answered = await Promise.all(posted);
    // A client would send its next request behind what is never read.
    for (const { answer } of answered) expect(answer).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: close\r\n.*refused/s);
    const isDone = (connection: net.Socket) => connection.destroyed || connection.bytesRead > megabyte;
    await vi.waitUntil(() => [...connections].every(isDone), { timeout: 20_000 });
    const read = [...connections].reduce((sum, { bytesRead }) => sum + bytesRead / megabyte, 0);
    expect(read).toBeGreaterThan(4);
    const seconds = (performance.now() - began) / 1000;
    // Of each: its first bytes, and up to 64 KB more, which Node has asked for by then.
    expect(read).toBeLessThan(16 + seconds + requests * (1 / 16 + 1 / 64));
    for (const { socket } of answered) socket.destroy();
    await port.close();
  },
);

test("nothing is kept of a refused request whose connection has closed", async () => {
  const kept: WeakRef<object>[] = [];
  const port = await listen({
    ...patient,
    handler: (request, response) => {
      kept.push(new WeakRef(request));
      response.statusCode = 401;
      response.end("refused");
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  // More than are read to the end.
  const sent = await Promise.all(Array.from({ length: 40 }, () => posting(port.port)));
  for (const { socket } of sent) socket.destroy();
  setFlagsFromString("--expose-gc");
  const gc: () => void = runInNewContext("gc");
  // Well before `readSeconds`.
  await vi.waitUntil(
    () => {
      gc();
      return kept.every((request) => request.deref() === undefined);
    },
    { timeout: 10_000, interval: 500 },
  );
  expect(kept).toHaveLength(40);
  await port.close();
});

test("a client that wants its connection closed sees the answer, and may send the rest", async () => {
  const { port, connections } = await refusing();
  const socket = net.connect({ port: port.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\nConnection: close\r\n\r\n");
  let answer = "";
  socket.on("data", (piece: Buffer) => {
    answer += piece;
  });
  await once(socket, "end");
  expect(answer).toContain("refused");
  const [connection] = connections;
  const closed = closing(connection!);
  // Not reset, which could take the answer away from a client that has not read it.
  socket.end(Buffer.alloc(60_000));
  await closed;
  expect(connection!.bytesRead).toBeGreaterThan(60_000);
  await port.close();
});

test("a refused request of 64 KB is read, and its connection is used again", async () => {
  const { port, connections } = await refusing();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < 3; i++) {
    const asked = http.request({ port: port.port, host: "127.0.0.1", method: "POST", agent }).end(Buffer.alloc(65_536));
    const [answer] = (await once(asked, "response")) as [http.IncomingMessage];
    await once(answer.resume(), "end");
  }
  expect(connections.size).toBe(1);
  agent.destroy();
  await port.close();
});

describe("a request with `Expect: 100-continue`", () => {
  const head = (port: number) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    return socket;
  };

  test("that is refused is not asked for its body, and its connection closes", async () => {
    const { port } = await refusing();
    const answer = Buffer.concat(await head(port.port).toArray()).toString();
    expect(answer).toMatch(/^HTTP\/1\.1 401 .*\r\nConnection: close\r\n.*refused/s);
    await port.close();
  });

  test("is told to go on when its body is read, and its connection stays open", async () => {
    const port = await listen({
      ...patient,
      handler: (request, response) => void (async () => response.end(Buffer.concat(await request.toArray())))(),
      upgrade: (_, socket) => socket.destroy(),
    });
    const socket = head(port.port);
    expect(String(await once(socket, "data"))).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    socket.write("body");
    const [answer] = await once(socket, "data");
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*Connection: keep-alive\r\n.*body/s);
    socket.destroy();
    await port.close();
  });
});
