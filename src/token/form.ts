import { invalidRequest, OAuthError } from "./errors.js";

/** Far larger than any valid request. */
const LONGEST_BODY = 32_768;
const MOST_PARAMETERS = 100;

const tooLong = () =>
  new OAuthError("invalid_request", "the request body is too large", { status: 413, refusal: "requestTooLarge" });

export async function readText(request: Request): Promise<string> {
  const incomplete = () => {
    throw invalidRequest("the request body is incomplete");
  };
  const announced = Number(request.headers.get("Content-Length") ?? Number.NaN);
  if (announced > LONGEST_BODY) throw tooLong();
  // HTTP ends the body at this length. To stream it would cost more than the rest of a refused request.
  if (announced <= LONGEST_BODY) return request.text().catch(incomplete);
  if (request.body === null) return "";
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = request.body.getReader();
  const next = () => reader.read().catch(incomplete);
  for (let part = await next(); !part.done; part = await next()) {
    length += part.value.byteLength;
    if (length > LONGEST_BODY) {
      await reader.cancel();
      throw tooLong();
    }
    chunks.push(part.value);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A form body. Each parameter may appear once (RFC 6749 §3.2); an empty parameter counts as missing. */
export type Form = ReadonlyMap<string, string>;

function checkType({ headers }: Request, wanted: string): void {
  const type = (headers.get("Content-Type") ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== wanted) throw invalidRequest(`the body must be ${wanted}`);
}

export async function readForm(request: Request): Promise<Form> {
  checkType(request, "application/x-www-form-urlencoded");
  const form = new Map<string, string>();
  const seen = new Set<string>();
  const text = await readText(request);
  // Counted before they are decoded: anybody may send thousands.
  if (text.split("&", MOST_PARAMETERS + 1).length > MOST_PARAMETERS)
    throw invalidRequest(`the body may have at most ${MOST_PARAMETERS} parameters`);
  for (const [name, value] of new URLSearchParams(text)) {
    if (seen.has(name)) throw invalidRequest(`${/^[\w-]{1,64}$/.test(name) ? name : "a parameter"} must be given once`);
    seen.add(name);
    if (value !== "") form.set(name, value);
  }
  return form;
}

export async function readJson(request: Request): Promise<unknown> {
  checkType(request, "application/json");
  try {
    return JSON.parse(await readText(request));
  } catch (error) {
    if (error instanceof OAuthError) throw error;
    throw invalidRequest("the body is not JSON");
  }
}
