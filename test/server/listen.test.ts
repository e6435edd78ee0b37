import http2 from "node:http2";
import { expect, test } from "vitest";
import { listen } from "../../src/server/listen.js";

test("who has sent everything may wait longer for an answer than anybody may take to send", async () => {
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
