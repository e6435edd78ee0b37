import { expect, test } from "vitest";
import { requestOf } from "../../src/server/http/web-request.js";

test("a body may be exactly as long as the limit, and no longer", async () => {
  const post = () => requestOf(new Request("http://box/", { method: "POST", body: "12345" }), "127.0.0.1");
  expect(String(await post().bytes(5))).toBe("12345");
  await expect(post().bytes(4)).rejects.toThrow("the body");
});
