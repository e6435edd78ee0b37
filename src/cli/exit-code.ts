/** Exit codes of every command; `vivavoce --help` and docs/troubleshooting.md list them. */
export const ExitCode = {
  /** Done; for a check: the voice matches, or no risk was found. */
  ok: 0,
  /** A check said no: no match, or a known fraudster. */
  no: 1,
  /** Wrong input: an option, a file, a setting, or a name that is unknown or already taken. */
  usage: 2,
  /** A check could not decide, or an enrollment could not be trained: too little or poor audio. */
  undecided: 3,
  /** The command is right but failed: no connection, no permission, or an error in the box. */
  failed: 4,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
