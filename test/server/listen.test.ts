import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { expect, test } from "vitest";
import { listen } from "../../src/server/listen.js";

/** Long enough that a busy machine does not exceed it. */
const patient = { host: "127.0.0.1", port: 0, headerSeconds: 30, readSeconds: () => 30 };

test("a client whose request is complete may wait for a response longer than the time limit for sending", async () => {
  const port = await listen({
    host: "127.0.0.1",
    port: 0,
    headerSeconds: 10,
    readSeconds: () => 0.1,
    handler: (_, response) => setTimeout(() => response.end("answered"), 500),
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
  await once(socket, "close");
  await port.close();
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
  await once(stream, "close");
  clearInterval(sending);
  expect(asked).toEqual(["/x"]);
  await port.close();
  session.destroy();
});

/** More than the buffers of a connection hold. */
const large = Buffer.alloc(64 * 1024 * 1024);

test("a client that does not read its response is cut off, one that waits for a response is not", async () => {
  const closed: Promise<unknown>[] = [];
  const port = await listen({
    ...patient,
    idleSeconds: 0.3,
    handler: (request, response) => {
      if (request.url === "/late") return setTimeout(() => response.end("answered"), 1000);
      closed.push(once(response, "close"));
      response.end(large);
    },
    upgrade: (_, socket) => socket.destroy(),
  });
  const url = `http://127.0.0.1:${port.port}`;
  expect(await (await fetch(`${url}/late`)).text()).toBe("answered");
  const socket = net.connect(port.port, "127.0.0.1");
  socket.on("error", () => {});
  socket.write("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  const session = http2.connect(url);
  session.on("error", () => {});
  let text = "";
  for await (const chunk of session.request({ ":path": "/late" })) text += chunk;
  expect(text).toBe("answered");
  const unread = session.request({ ":path": "/large" });
  unread.on("error", () => {});
  await once(unread, "response");
  await expect.poll(() => closed.length).toBe(2);
  await Promise.all(closed);
  socket.destroy();
  session.destroy();
  await port.close();
});
