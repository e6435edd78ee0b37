import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SessionsProcessor } from "../../src/contract/index.js";
import { type Rehearsal, rehearse } from "./rehearsal.js";

const run = promisify(execFile);
let folder: string;
let rehearsal: Rehearsal;
let ca: string;

async function certificate(name: string): Promise<void> {
  await run("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
    ...["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"],
    ...["-keyout", join(folder, "key.pem"), "-out", join(folder, "cert.pem")],
  ]);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "vivavoce-tls-"));
  ca = join(folder, "cert.pem");
  await certificate("first");
  rehearsal = rehearse({}, { tls: { cert: ca, key: join(folder, "key.pem") } });
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

  it("cleartext is not", async () => {
    await expect(run("curl", ["-sS", rehearsal.service.url.replace("https", "http")])).rejects.toThrow();
  });

  it("a new certificate is taken up without a restart", async () => {
    await certificate("second");
    rehearsal.service.reloadTls();
    const { stderr } = await run("curl", ["-sSv", "--cacert", ca, `${rehearsal.service.url}/healthz`]);
    expect(stderr).toMatch(/CN=second/);
  });
});
