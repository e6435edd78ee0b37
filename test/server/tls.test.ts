import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls from "node:tls";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { SessionsProcessor } from "../../src/contract/index.js";
import { loadConfig } from "../../src/server/config.js";
import { run as vivavoce } from "../cli/run.js";
import { writeCertificate } from "./certificate.js";
import { type Rehearsal, rehearse } from "./rehearsal.js";

const run = promisify(execFile);
let folder: string;
let rehearsal: Rehearsal;
let ca: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-tls-"));
  const files = await writeCertificate(folder, "first");
  ca = files.cert;
  rehearsal = rehearse({}, { tls: files });
  await rehearsal.service.listen();
});
afterAll(async () => {
  await rehearsal?.service.stop();
  await rm(folder, { recursive: true });
});

describe("under TLS", () => {
  it.each(["--http1.1", "--http2"])("curl %s is answered, by what ALPN chose", async (flag) => {
    const url = rehearsal.service.url;
    expect(url).toMatch(/^https:/);
    const { stdout } = await run("curl", ["-sS", flag, "--cacert", ca, "-w", "%{http_version}", `${url}/healthz`]);
    expect(stdout).toBe(`ok\n${flag === "--http2" ? "2" : "1.1"}`);
  });

  it("gRPC is answered", async () => {
    const transport = createGrpcTransport({ baseUrl: rehearsal.service.url, nodeOptions: { ca: await readFile(ca) } });
    const { status } = await createClient(SessionsProcessor, transport).startSession({
      context: { gkScopeId: { value: "s" } },
    });
    expect(status!.requestId).not.toBe("");
  });

  it("`vivavoce health` finds the box by its settings, and reports if it cannot be reached", async () => {
    vi.stubEnv("VIVAVOCE_TLS_CERT", ca);
    vi.stubEnv("VIVAVOCE_TLS_KEY", join(folder, "key.pem"));
    vi.stubEnv("VIVAVOCE_HOST", "0.0.0.0");
    const { port } = new URL(rehearsal.service.url);
    vi.stubEnv("VIVAVOCE_PORT", port);
    expect(await vivavoce("health")).toMatchObject({ code: 0, out: `https://127.0.0.1:${port}/readyz is ready\n` });
    vi.stubEnv("VIVAVOCE_PORT", "1");
    expect(await vivavoce("health", "--json")).toMatchObject({
      code: 4,
      json: {
        error: expect.stringMatching(/^cannot connect to https:\/\/127\.0\.0\.1:1\/readyz: connection refused$/),
      },
    });
    vi.unstubAllEnvs();
  });

  it("cleartext is not", async () => {
    await expect(run("curl", ["-sS", rehearsal.service.url.replace("https", "http")])).rejects.toThrow();
  });

  it("a new certificate is loaded without a restart", async () => {
    await writeCertificate(folder, "second");
    rehearsal.service.reloadTls();
    const { stderr } = await run("curl", ["-sSv", "--cacert", ca, `${rehearsal.service.url}/healthz`]);
    expect(stderr).toMatch(/CN=second/);
  });

  /** Connects, and waits for the first byte: over TLS 1.3, a client knows only then that the server has accepted it. */
  const shake = async (url: string, options: tls.ConnectionOptions = {}) => {
    const { port, hostname } = new URL(url);
    const socket = tls.connect({ port: Number(port), host: hostname, ca: await readFile(ca), ...options });
    socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    await once(socket, "data");
    return socket;
  };

  it("expensive handshakes are refused: other curves, and one after another on a connection", async () => {
    for (const ecdhCurve of ["X25519", "P-256"]) (await shake(rehearsal.service.url, { ecdhCurve })).destroy();
    for (const ecdhCurve of ["P-384", "P-521", "X448"])
      for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const)
        await expect(shake(rehearsal.service.url, { ecdhCurve, maxVersion })).rejects.toThrow(/handshake failure/);
    const socket = await shake(rehearsal.service.url, { maxVersion: "TLSv1.2" });
    const failed = once(socket, "error");
    socket.renegotiate({ rejectUnauthorized: true }, () => {});
    expect(String(await failed)).toContain("no renegotiation");
  });

  it("an address may begin as many handshakes as one client calls; further ones are cut off and logged", async () => {
    const tlsFiles = { cert: ca, key: join(folder, "key.pem") };
    const limited = rehearse({}, { tls: tlsFiles, limits: { callsPerSecond: 0.01, callBurst: 3 } });
    await limited.service.listen();
    for (let i = 0; i < 3; i++) (await shake(limited.service.url)).destroy();
    await expect(shake(limited.service.url)).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(limited.logged.at(-1)).toMatchObject({ level: "warn", address: "127.0.0.1" });
    await limited.service.stop();
    const unlimited = rehearse({}, { tls: tlsFiles, limits: { callsPerSecond: 0, callBurst: 1 } });
    await unlimited.service.listen();
    for (let i = 0; i < 3; i++) (await shake(unlimited.service.url)).destroy();
    await unlimited.service.stop();
  });

  it("log and metric show when the certificate in use expires, and that it has", async () => {
    const expiry = async () =>
      /^vivavoce_certificate_expiry_timestamp_seconds (\d+)$/m.exec(
        await rehearsal.service.metrics.registry.metrics(),
      )?.[1];
    const inDays = async () => Math.round((Number(await expiry()) * 1000 - Date.now()) / 86_400_000);
    expect(await inDays()).toBe(2);
    await writeCertificate(folder, "third", 9);
    rehearsal.service.reloadTls();
    expect(await inDays()).toBe(9);
    expect(rehearsal.logged.at(-1)).toMatchObject({ message: "certificate loaded", expires: expect.any(String) });
    vi.useFakeTimers({ now: Date.now() + 10 * 86_400_000, toFake: ["Date"] });
    rehearsal.service.reloadTls();
    vi.useRealTimers();
    expect(rehearsal.logged.at(-1)).toMatchObject({ level: "error", message: "the certificate has expired" });
    expect(await rehearse().service.metrics.registry.metrics()).not.toMatch(/^vivavoce_certificate_expiry/m);
  });

  it("an invalid certificate is refused at start, and later leaves the old one in use", async () => {
    const broken = join(folder, "broken.pem");
    await writeFile(broken, "no certificate");
    const flags = { "tls.cert": broken, "tls.key": join(folder, "key.pem") };
    expect(() => loadConfig({ env: {}, flags })).toThrow(/broken\.pem and \S+key\.pem must be a certificate/);
    const good = await readFile(ca);
    await writeFile(ca, "no certificate");
    rehearsal.service.reloadTls();
    expect(rehearsal.logged.at(-1)).toMatchObject({
      message: "the new certificate was not loaded; the old one stays in use",
      cert: ca,
      key: join(folder, "key.pem"),
    });
    await writeFile(ca, good);
    const { stdout } = await run("curl", ["-sS", "--cacert", ca, `${rehearsal.service.url}/healthz`]);
    expect(stdout).toBe("ok\n");
  });

  it("a stop does not wait for idle connections", async () => {
    const { service } = rehearse({}, { tls: { cert: ca, key: join(folder, "key.pem") }, limits: { stopSeconds: 4 } });
    await service.listen();
    const { port, hostname } = new URL(service.url);
    const silent = tls.connect({ port: Number(port), host: hostname, ca: await readFile(ca) });
    silent.on("error", () => {});
    await once(silent, "secureConnect");
    const agent = new https.Agent({ keepAlive: true, ca: await readFile(ca) });
    const [response] = (await once(https.get(`${service.url}/healthz`, { agent }), "response")) as [IncomingMessage];
    response.resume();
    await once(response, "end");
    expect(response.headers["keep-alive"], "a caller that pauses must find its connection open").toBe("timeout=75");
    expect(await service.stop()).toBe(true);
    agent.destroy();
  });
});
