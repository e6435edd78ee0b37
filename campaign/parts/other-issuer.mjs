import { generateKeyPairSync, randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { SignJWT } from "jose";

const ISSUER = "https://issuer.example";
const AUDIENCE = "box";
const LIFETIME_S = 3600;

/** An issuer that a box trusts by its configuration (`auth.issuers`), for tokens of scopes that the box itself binds no client to. */
export function otherIssuer(folder) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwks = join(folder, "jwks.json");
  const kid = randomUUID();
  writeFileSync(
    jwks,
    JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" }] }),
  );
  return {
    config: { issuer: ISSUER, jwks, audience: AUDIENCE },
    token: (gkScope) =>
      new SignJWT({ client_id: gkScope, scope: "bio", gk_scopes: [gkScope] })
        .setProtectedHeader({ alg: "ES256", kid, typ: "at+jwt" })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(gkScope)
        .setJti(randomUUID())
        .setIssuedAt()
        .setExpirationTime(`${LIFETIME_S}s`)
        .sign(privateKey),
  };
}
