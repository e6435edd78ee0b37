import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";

/** Writes a certificate for 127.0.0.1 that signs itself, and its key, in place of what is there. */
export async function writeCertificate(
  folder: string,
  name: string,
  days = 2,
): Promise<{ readonly cert: string; readonly key: string }> {
  const files = { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") };
  await promisify(execFile)("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", String(days)],
    ...["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"],
    ...["-keyout", files.key, "-out", files.cert],
  ]);
  return files;
}
