/** How each telephone system authenticates. */
import { createHmac } from "node:crypto";

export const authToken = "12345678901234567890123456789012";
export const apiKey = "SGVsbG8sIEkgYW0gdGhlIEFQSSBrZXkh";
export const clientSecret = "TXlTdXBlclNlY3JldEtleVRlbGxOby0xITJAMyM0JDU=";
export const basic = { user: "pbx", password: "a long password" };
export const basicHeader = `Basic ${Buffer.from(`${basic.user}:${basic.password}`).toString("base64")}`;

/**
 * As Genesys signs a connection (https://developer.genesys.cloud/devapps/audiohook/security).
 * @param {string} host
 * @param {string} sessionId
 * @returns {Record<string, string>}
 */
export function audioHookHeaders(host, sessionId) {
  const headers = {
    "audiohook-organization-id": "d7934305-0972-4844-938e-9060eef73d05",
    "audiohook-correlation-id": "e160e428-53e2-487c-977d-96989bf5c99d",
    "audiohook-session-id": sessionId,
    "x-api-key": apiKey,
  };
  const now = Math.floor(Date.now() / 1000);
  const signed = { "@request-target": "/telephony/audiohook", "@authority": host, ...headers };
  const names = Object.keys(signed).map((name) => `"${name}"`);
  const parameters = `(${names.join(" ")});keyid="${apiKey}";nonce="VGhpc0lzQVVuaXF1ZU5vbmNl";alg="hmac-sha256";created=${now};expires=${now + 10}`;
  const lines = Object.entries({ ...signed, "@signature-params": parameters }).map(
    ([name, value]) => `"${name}": ${value}`,
  );
  const signature = createHmac("sha256", Buffer.from(clientSecret, "base64")).update(lines.join("\n")).digest("base64");
  return { ...headers, "signature-input": `sig1=${parameters}`, signature: `sig1=:${signature}:` };
}
