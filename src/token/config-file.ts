import { z } from "zod";
import { reportInput, schemaFault } from "../contract/schema-fault.js";
import { type Application, isEndpoint, SERVICES } from "./applications.js";
import { OAuthError } from "./errors.js";
import { formatUrn, isLanguage, parseUrn, UrnError } from "./urn.js";

/** One block for each client id of the geography. */
export function credentialBlocks(application: Application, geography: string): CredentialBlock[] {
  const settings = Object.hasOwn(application.geographies, geography) ? application.geographies[geography] : undefined;
  if (!settings) throw new OAuthError("not_found", `geography ${geography} does not exist in this application`);
  return application.clients
    .filter((client) => client.geography === geography)
    .map((client) => ({
      client_id: client.id,
      client_secret: "",
      oauth_server_url: settings.oauthServerUrl,
      oauth_scopes: settings.scopes.join(" "),
      ...Object.fromEntries(
        SERVICES.flatMap((service) => {
          const address = settings.endpoints[service];
          return address ? [[`${service}_endpoint`, address]] : [];
        }),
      ),
    }));
}

/** The text of `config.json`. */
export const writeConfig = (blocks: readonly CredentialBlock[]): string => `${JSON.stringify(blocks, null, 2)}\n`;

const endpoint = z.string().refine(isEndpoint, "must be host:port").exactOptional();
const block = z.object({
  client_id: z.string().min(1),
  /** Empty until the owner fills it in. */
  client_secret: z.string(),
  oauth_server_url: z.url({ protocol: /^https?$/ }),
  /** Separated by spaces. */
  oauth_scopes: z.string(),
  /** Of each service that exists there; `bio` is the voiceprint service. */
  asr_endpoint: endpoint,
  nlu_endpoint: endpoint,
  tts_endpoint: endpoint,
  dlg_endpoint: endpoint,
  bio_endpoint: endpoint,
});

/** One credential block of `config.json`. */
export type CredentialBlock = Readonly<z.output<typeof block>>;

/** A configuration file that cannot be used; the message says where. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The message of JSON.parse quotes the text, which contains a secret.
    throw new ConfigError(`${what} is not JSON`);
  }
}

/** Reads an array of blocks, or a single one. */
export function readConfig(text: string): CredentialBlock[] {
  const json = parseJson(text, "config.json");
  const result = z
    .array(block)
    .min(1)
    .safeParse(Array.isArray(json) ? json : [json], reportInput);
  if (result.success) return result.data;
  const issue = result.error.issues[0] as z.core.$ZodIssue;
  throw new ConfigError(`config.json: ${issue.path.join(".") || "the list"}: ${schemaFault(issue)}`);
}

/** Which service the parameters are for. */
export type ParamsKind = "asr_params" | "nlu_params" | "dlg_params";

/** The model that a service should use; a dialog has no language. */
export interface Params {
  readonly urn: string;
  readonly language?: string;
}

const KINDS = { asr_params: "recognition", nlu_params: "interpretation", dlg_params: "dialog" } as const;

/** Parameters that tell a service which model to use. */
export function writeParams(kind: ParamsKind, contextTag: string, language?: string): Params {
  if (kind === "dlg_params") {
    if (language !== undefined) throw new ConfigError("dlg_params must not have a language");
    return { urn: formatUrn({ kind: "dialog", contextTag }) };
  }
  if (language === undefined) throw new ConfigError(`${kind} must have a language, such as eng-USA`);
  return { urn: formatUrn({ kind: KINDS[kind], contextTag, language }), language };
}

const params = z.strictObject({
  urn: z.string(),
  language: z
    .string()
    .refine(isLanguage, { error: ({ input }) => `must have the form eng-USA, got "${String(input)}"` })
    .exactOptional(),
});

/** Reads what `writeParams` wrote. Throws `ConfigError`. */
export function readParams(kind: ParamsKind, text: string): Params {
  const result = params.safeParse(parseJson(text, kind), reportInput);
  if (!result.success) {
    const issue = result.error.issues[0] as z.core.$ZodIssue;
    throw new ConfigError(`${kind}: ${[...issue.path, schemaFault(issue)].join(": ")}`);
  }
  const { urn, language } = result.data;
  try {
    const parsed = parseUrn(urn);
    if (parsed.kind !== KINDS[kind])
      throw new ConfigError(`${kind}: the urn must name a resource of the kind ${KINDS[kind]}, got ${parsed.kind}`);
    const named = "language" in parsed ? parsed.language : undefined;
    if (named !== language)
      throw new ConfigError(
        `${kind}: the language is ${language ?? "missing"}, but that of the urn is ${named ?? "missing"}`,
      );
  } catch (error) {
    if (error instanceof UrnError) throw new ConfigError(`${kind}: urn: ${error.message} (at ${error.at})`);
    throw error;
  }
  return result.data;
}
