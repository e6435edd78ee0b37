/** Exit codes; `vivavoce --help` lists them. */
export const ExitCode = {
  /** Done; for a check: the voice matches, or no risk was found. */
  ok: 0,
  /** A check said no: no match, or a known fraudster. */
  no: 1,
  /** The command line, a file or the configuration is wrong. */
  usage: 2,
  /** A check could not decide: too little or poor audio, or nobody enrolled. */
  undecided: 3,
  /** The operation failed. */
  failed: 4,
} as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];
