import { expect, test } from "vitest";
import { requestOf } from "../../src/server/http/web-request.js";

test("a body may be exactly as long as the limit, and no longer", async () => {
  const post = () => requestOf(new Request("http://box/", { method: "POST", body: "12345" }), "127.0.0.1");
  expect(String(await post().bytes(5))).toBe("12345");
  await expect(post().bytes(4)).rejects.toThrow("the body");
});

test("a body that breaks off is the sender's fault", async () => {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(3));
      controller.error(new Error("reset"));
    },
  });
  const request = new Request("http://box/", { method: "POST", body, duplex: "half" } as RequestInit);
  await expect(requestOf(request, "127.0.0.1").bytes(100)).rejects.toThrow("the request body is incomplete");
  expect(await requestOf(new Request("http://box/"), "127.0.0.1").bytes(100)).toHaveLength(0);
});
