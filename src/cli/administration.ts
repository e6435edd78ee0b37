/** Where `vivavoce token …` works: on a running box, or on a store. */
import type { Command } from "commander";
import { loadConfig, ownUrl } from "../server/config.js";
import { createTokenCache, TokenRequestError } from "../token/cache.js";
import { OAuthError } from "../token/errors.js";
import { administerService, createManagementClient, type TokenAdministration } from "../token/management-client.js";
import { PLATFORM_SCOPE } from "../token/scopes.js";
import { createTokenService } from "../token/service.js";
import { boxAddress, unreachable } from "./box-address.js";
import { CommandError } from "./command-error.js";
import { ExitCode } from "./exit-code.js";
import { openLocalStore, type StoreUse } from "./local-store.js";
import { type PlaceOptions, variable } from "./shared-options.js";

/** Options of every administrative command. */
export interface Place extends Omit<PlaceOptions, "scope" | "configset"> {
  readonly config?: string;
}

/** Every administrative command works on a running box (`--url`) or on a store that no box has open. */
export const withPlace = (command: Command): Command =>
  command
    .addOption(variable("--url <url>", "work on the running box at this address, through its management interface"))
    .addOption(variable("--token <token>", "platform-api access token for the box"))
    .addOption(variable("--client-id <id>", "client id of a profile credential, to get a token"))
    .addOption(variable("--client-secret <secret>", "secret of the profile credential"))
    .addOption(variable("--store <store>", "store to work on: a folder (no box may have it open), or postgres://…"))
    .option("--config <file>", "configuration file of the box")
    .option("--json", "print the result as JSON");

function authorizationFor(options: Place & { readonly url: string }): () => Promise<string> {
  if (options.token !== undefined) return async () => `Bearer ${options.token}`;
  if (options.clientId === undefined || options.clientSecret === undefined)
    throw new CommandError(
      "the box requires an access token",
      "give --token, or --client-id and --client-secret of a service account from the profile page",
    );
  const { url, clientId, clientSecret } = options;
  const cache = createTokenCache({ tokenUrl: `${url}/oauth2/token`, clientId, clientSecret, scope: PLATFORM_SCOPE });
  return () => cache.authorization();
}

/** A value that cannot be used, a name that does not exist, a name that is taken. */
const WRONG_USAGE: ReadonlySet<number> = new Set([400, 404, 409]);

export async function withAdministration(
  options: Place & StoreUse,
  work: (administration: TokenAdministration) => Promise<void>,
): Promise<void> {
  try {
    if (options.url !== undefined) {
      const url = boxAddress(options.url);
      const client = createManagementClient({
        url,
        authorization: authorizationFor({ ...options, url }),
        fetch: (...request) => fetch(...request).catch((error: unknown) => Promise.reject(unreachable(url, error))),
      });
      return await work(client);
    }
    const config = loadConfig({ file: options.config, flags: { store: options.store } });
    const store = await openLocalStore(config, {
      creates: options.creates,
      ifMissing: "check --store, VIVAVOCE_STORE and --config; a box creates its store when it starts",
      ifInUse: "if that is a running box, use it with --url and a credential from an owner's profile page",
    });
    try {
      return await work(administerService(createTokenService({ documents: store.documents, issuer: ownUrl(config) })));
    } finally {
      await store.close();
    }
  } catch (error) {
    if (error instanceof OAuthError)
      throw new CommandError(
        error.message,
        undefined,
        WRONG_USAGE.has(error.status) ? ExitCode.usage : ExitCode.failed,
      );
    if (error instanceof TokenRequestError) throw new CommandError(error.message, undefined, ExitCode.failed);
    throw error;
  }
}
