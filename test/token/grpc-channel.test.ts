import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, credentials, Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTokenCache, grpcMetadataGenerator } from "../../src/token/cache.js";
import type { OAuthError } from "../../src/token/errors.js";
import { createBox, createRuntimeClient, ISSUER } from "./box.js";

const bytes = (value: Buffer): Buffer => value;
const METHOD = {
  path: "/test.Echo/Say",
  requestStream: false,
  responseStream: false,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
};

let folder: string;
let key: Buffer;
let certificate: Buffer;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "vivavoce-tls-"));
  const [keyFile, certificateFile] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-days",
      "1",
      "-subj",
      "/CN=localhost",
      "-addext",
      "subjectAltName=DNS:localhost",
      "-keyout",
      keyFile,
      "-out",
      certificateFile,
    ],
    { stdio: "pipe" },
  );
  key = readFileSync(keyFile);
  certificate = readFileSync(certificateFile);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a real gRPC channel sends the token as its credentials, and the service verifies it offline", async () => {
  const box = createBox({ startAt: Date.now() });
  const { clientId, secret } = await createRuntimeClient(box);
  const server = new Server();
  server.addService(
    { say: METHOD },
    {
      say: (call: { metadata: Metadata }, callback: (error: object | null, value?: Buffer) => void) => {
        box.service.runtime.authorize(String(call.metadata.get("authorization")[0] ?? ""), "bio").then(
          (token) => callback(null, Buffer.from([...token.gkScopes].join())),
          (error: OAuthError) => callback({ code: status.UNAUTHENTICATED, details: error.message }),
        );
      },
    },
  );
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(
      "localhost:0",
      ServerCredentials.createSsl(null, [{ private_key: key, cert_chain: certificate }]),
      (error, bound) => (error ? reject(error) : resolve(bound)),
    ),
  );
  let requests = 0;
  const cache = createTokenCache({
    tokenUrl: `${ISSUER}/oauth2/token`,
    clientId,
    clientSecret: secret,
    scope: "bio",
    fetch: (url, init) => {
      requests++;
      return box.fetch(String(url), init);
    },
  });
  const tls = credentials.createSsl(certificate);
  const say = (client: Client) =>
    new Promise<string>((resolve, reject) =>
      client.makeUnaryRequest(METHOD.path, bytes, bytes, Buffer.from(""), (error, value) =>
        error ? reject(error) : resolve(String(value)),
      ),
    );
  const guarded = new Client(
    `localhost:${port}`,
    credentials.combineChannelCredentials(
      tls,
      credentials.createFromMetadataGenerator(grpcMetadataGenerator(cache, () => new Metadata())),
    ),
  );
  const bare = new Client(`localhost:${port}`, tls);
  try {
    expect(await Promise.all(Array.from({ length: 10 }, () => say(guarded)))).toEqual(Array(10).fill("scope-1"));
    expect(requests).toBe(1);
    await expect(say(bare)).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
  } finally {
    guarded.close();
    bare.close();
    server.forceShutdown();
  }
});
