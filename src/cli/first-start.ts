import { rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { dataFolder, isFolder, type ServerConfig } from "../server/config.js";
import { reasonOf } from "../server/file-fault.js";
import { curlLines } from "../server/first-run.js";
import type { FirstStart } from "../server/start.js";
import { makeFolders } from "../store/make-folders.js";

/** What a first start created, with secrets; empty afterwards. */
export function firstStartLines({ url, firstApplication, firstOwner, operatorUrl }: FirstStart): string[] {
  const lines: string[] = [];
  if (firstOwner)
    lines.push(
      `An owner was created who can sign in at ${operatorUrl}. The password is shown only once.`,
      `  user name      ${firstOwner.name}`,
      `  password       ${firstOwner.password}`,
    );
  if (firstApplication)
    lines.push(
      "",
      "This is the first start: an application was created. Its secret is shown only once.",
      `  client id      ${firstApplication.clientId}`,
      `  client secret  ${firstApplication.clientSecret}`,
      "",
      "Paste these lines into a shell to get a token, enroll a voice and verify it:",
      "",
      curlLines(url, firstApplication),
    );
  return lines;
}

/**
 * Writes the secrets to a file that only this user can read, and prints its path. Output that is not a terminal goes to
 * a journal or log, which others can read. If the file cannot be written, the secrets are printed: otherwise they would
 * be lost.
 */
export async function kept(lines: readonly string[], config: Pick<ServerConfig, "store">): Promise<readonly string[]> {
  const file = firstStartFile(config.store);
  try {
    await makeFolders(dirname(file), 0o700);
    rmSync(file, { force: true });
    writeFileSync(file, `${lines.join("\n").trim()}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    return [`WARNING: ${file} cannot be written (${reasonOf(error)}), so the secrets are shown here.`, ...lines];
  }
  return [`First start: the secrets of the application and the owner are in ${file}. Read it, then delete it.`];
}

/** In the store's folder; if the store is not a folder, in the data folder of this user or of the systemd unit. */
function firstStartFile(store: string): string {
  return join(isFolder(store) ? resolve(store) : (process.env.STATE_DIRECTORY ?? dataFolder()), "first-start.txt");
}
