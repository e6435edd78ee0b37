import type { Argument, Command } from "commander";

/** Completions of a command line, read from the commands themselves. */
interface Completion {
  /** "watchlist check" */
  readonly path: string;
  readonly words: readonly string[];
  readonly takesFiles: boolean;
}

function completions(program: Command): Completion[] {
  const visit = (command: Command, path: readonly string[]): Completion[] => {
    const options = command.options.flatMap((option) => (option.long ? [option.long] : []));
    const subcommands = command.commands.map((one) => one.name());
    const values = [
      ...command.registeredArguments.map((argument: Argument) => argument.name()),
      ...command.options.map(({ flags }) => flags.replace(/^[^<[]*/, "")),
    ];
    const takesFiles = values.some((value) => /file|folder|onnx|model|store|json/.test(value));
    return [
      { path: path.join(" "), words: [...subcommands, ...options, "--help"], takesFiles },
      ...command.commands.flatMap((one) => visit(one, [...path, one.name()])),
    ];
  };
  return visit(program, []);
}

export function completionCommand(program: Command): void {
  program
    .command("completion")
    .description("print a shell completion script; to load it: source <(vivavoce completion bash)")
    .argument("<shell>", "bash or zsh")
    .option("--json", "print the script as a string in JSON")
    .action((shell: string, options: { readonly json?: boolean }) => {
      if (shell !== "bash" && shell !== "zsh") program.error(`error: the shell must be bash or zsh, got ${shell}`);
      const script = shell === "bash" ? bash(program) : zsh(program);
      process.stdout.write(options.json ? `${JSON.stringify({ shell, script })}\n` : script);
    });
}

function cases(program: Command): string {
  return completions(program)
    .map(({ path, words, takesFiles }) => `    "${path}") words="${words.join(" ")}"; files=${takesFiles ? 1 : 0} ;;`)
    .join("\n");
}

/** The commands typed so far, without options. */
const PATH_LOOP = (program: Command) => `    case "$path $word" in
${completions(program)
  .filter(({ path }) => path !== "")
  .map(({ path }) => `      "${path.includes(" ") ? path : ` ${path}`}") path="${path}" ;;`)
  .join("\n")}
    esac`;

function bash(program: Command): string {
  return `_vivavoce() {
  local current="\${COMP_WORDS[COMP_CWORD]}" path="" word words="" files=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
${PATH_LOOP(program)}
  done
  case "$path" in
${cases(program)}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  local IFS=$'\\n'
  if [[ $files == 1 || $current == */* ]]; then COMPREPLY+=($(compgen -f -- "$current")); fi
}
complete -o filenames -F _vivavoce vivavoce
`;
}

function zsh(program: Command): string {
  return `#compdef vivavoce
_vivavoce() {
  local path_of="" word words_of="" files=0 i
  for ((i = 2; i < CURRENT; i++)); do
    word="\${words[i]}"
${PATH_LOOP(program).replaceAll("$path ", "$path_of ").replaceAll(") path=", ") path_of=")}
  done
  case "$path_of" in
${cases(program).replaceAll("words=", "words_of=")}
  esac
  compadd -- \${=words_of}
  if [[ $files == 1 || $PREFIX == */* ]]; then _files; fi
}
compdef _vivavoce vivavoce
`;
}
