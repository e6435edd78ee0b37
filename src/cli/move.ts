/** Moves voiceprints between stores in sealed files. */
import { lstat, open, unlink } from "node:fs/promises";
import type { Command } from "commander";
import { StatusError } from "../contract/index.js";
import type { Operations } from "../contract/operations.js";
import { Voiceprints } from "../voiceprints.js";
import { profilesIn } from "../workflow.js";
import { bytesOf, faultOf } from "./calls.js";
import { CommandError } from "./command-error.js";
import type { StoreUse } from "./local-store.js";
import { withOperations } from "./operations.js";
import { createOutput } from "./output.js";
import { assertCanWrite } from "./output-file.js";
import { type PlaceOptions, withPlace } from "./shared-options.js";
import { readStandardInput } from "./standard-input.js";

interface PassphraseOptions extends PlaceOptions {
  readonly passphraseStdin?: boolean;
}

/** Never the value of a flag: other users of the machine can see those. */
const withPassphrase = (command: Command): Command =>
  command.option("--passphrase-stdin", "read the passphrase from standard input instead of VIVAVOCE_PASSPHRASE");

async function passphraseOf(options: PassphraseOptions): Promise<string> {
  const passphrase = options.passphraseStdin ? await readStandardInput() : process.env.VIVAVOCE_PASSPHRASE;
  if (passphrase) return passphrase;
  throw new CommandError(
    "a passphrase is required, because the file is sealed",
    "set VIVAVOCE_PASSPHRASE, or give --passphrase-stdin and the passphrase on standard input",
  );
}

export function exportCommand(program: Command): void {
  withPassphrase(
    withPlace(
      program
        .command("export")
        .description("write a person's voiceprints to a file, sealed with a passphrase, for `import` elsewhere")
        .argument("<name>", "name of the person")
        .argument("<file>", "file to write; must not exist")
        .option("--fraudster", "the name is a fraudster's")
        .option("--plain", "write readable JSON for the person instead; it cannot be imported"),
    ),
  ).action(
    async (
      name: string,
      file: string,
      options: PassphraseOptions & { readonly fraudster?: boolean; readonly plain?: boolean },
    ) => {
      if (await lstat(file).catch(() => null)) throw alreadyThere(file);
      await assertCanWrite(file);
      const passphrase = options.plain ? null : await passphraseOf(options);
      await onVoices(options, async (voices, operations) => {
        const owner = options.fraudster ? "fraudster" : "person";
        if ((await profilesIn(operations, options.scope, owner, name)).length === 0)
          throw new CommandError(`no ${owner} "${name}" is enrolled here`);
        const kind = options.fraudster ? "exportFraudster" : "export";
        const content =
          passphrase === null
            ? JSON.stringify(await voices[kind](name), null, 2)
            : await voices[kind](name, { passphrase });
        await writeNew(file, content);
        return { exported: name, file, sealed: passphrase !== null };
      });
    },
  );
}

export function importCommand(program: Command): void {
  withPassphrase(
    withPlace(
      program
        .command("import")
        .description("import voiceprints that `export` sealed; the model must be the same")
        .argument("<file>", "file that `export` wrote")
        .option("--as <name>", "import them under this name"),
    ),
  ).action(async (file: string, options: PassphraseOptions & { readonly as?: string }) => {
    const sealed = await bytesOf(file);
    const passphrase = await passphraseOf(options);
    await onVoices({ ...options, creates: true }, async (voices) => {
      const name = options.as === undefined ? {} : { name: options.as };
      const imported = await voices.import(sealed, { passphrase, ...name }).catch((error: unknown) => {
        throw isAboutFile(error) ? new CommandError(`${file}: ${error.message}`) : error;
      });
      return { imported, file };
    });
  });
}

type Done =
  | { readonly exported: string; readonly file: string; readonly sealed: boolean }
  | { readonly imported: readonly { readonly name: string; readonly tag: string }[]; readonly file: string };

const isAboutFile = (error: unknown): error is StatusError =>
  error instanceof StatusError && error.status.fieldViolations.some(({ field }) => field === "sealed");

const onVoices = (
  options: PlaceOptions & StoreUse,
  work: (voices: Voiceprints, operations: Operations) => Promise<Done>,
): Promise<void> =>
  withOperations(options, async ({ operations }) => {
    const done = await work(new Voiceprints(operations, options), operations);
    createOutput(options.json).answer(done, () =>
      "exported" in done
        ? `${done.exported} is exported to ${done.file}${done.sealed ? ", sealed with the passphrase" : ""}.`
        : done.imported.map(({ name, tag }) => `${name}${tag ? ` (${tag})` : ""} is imported.`).join("\n"),
    );
  });

const alreadyThere = (path: string) => new CommandError(`${path} already exists; choose another file`);

/** Readable by its owner only, and never overwrites a file, which may be the only copy of a voiceprint. */
async function writeNew(path: string, content: string): Promise<void> {
  const file = await open(path, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "EEXIST" ? alreadyThere(path) : faultOf(path, error);
  });
  try {
    await file.writeFile(`${content}\n`);
    await file.sync();
  } catch (error) {
    await unlink(path);
    throw faultOf(path, error);
  } finally {
    await file.close();
  }
}
