/** Which pages of other origins may call, as a browser is told. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { withCors } from "../../src/server/http/cors.js";

const listed = "https://app.example";

it.each([
  ["a listed origin", [listed], listed, listed],
  ["another origin", [listed], "https://elsewhere.example", null],
  ["any origin if none is listed", [], listed, null],
])("%s", async (_, origins, origin, allowed) => {
  const server = createServer(withCors((_request, response) => void response.end("answered"), origins));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const answer = await fetch(url, { headers: { origin } });
    expect(await answer.text()).toBe("answered");
    expect(answer.headers.get("access-control-allow-origin")).toBe(allowed);
    const preflight = { method: "OPTIONS", headers: { origin, "access-control-request-method": "POST" } };
    const { status, headers } = await fetch(url, preflight);
    expect(status).toBe(allowed ? 204 : 200);
    expect(headers.get("access-control-max-age")).toBe(allowed && "7200");
    expect(headers.get("access-control-allow-methods")).toBe(allowed && "GET, POST, PUT, PATCH, DELETE");
    expect(headers.get("access-control-allow-headers")?.startsWith("authorization, x-request-id, content-type")).toBe(
      allowed ? true : undefined,
    );
    expect(headers.get("access-control-allow-credentials")).toBeNull();
    expect(answer.headers.get("access-control-expose-headers")?.startsWith("x-request-id, retry-after")).toBe(
      allowed ? true : undefined,
    );
    expect(answer.headers.get("vary")).toBe(origins.length > 0 ? "origin" : null);
    const noPreflight = await fetch(url, { method: "OPTIONS", headers: { origin } });
    expect(await noPreflight.text()).toBe("answered");
    const program = await fetch(url);
    expect([program.status, program.headers.get("access-control-allow-origin")]).toEqual([200, null]);
  } finally {
    server.close();
  }
});
