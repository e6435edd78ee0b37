/** Every word that the operator view says. Another language is another file of this shape. */

const percent = (rate: number) => `${(100 * rate).toFixed(2)} %`;

/** `VOICEPRINT_MATCH` as people write it. */
const words = (name: string) => {
  const text = name.toLowerCase().replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
};

export const strings = {
  title: "vivavoce operator view",
  brand: "vivavoce",
  part: "operator view",
  needsScript: "This view asks the box for what it shows, and needs JavaScript for it.",
  scope: "Scope",
  noScope: "No application of this box is bound to a biometric scope yet.",
  signedInAs: (name: string) => `Signed in as ${name}`,
  about: (version: string, revision: string, calibration: string) =>
    `vivavoce ${version}, model ${revision.slice(0, 16)}, calibration ${calibration.slice(0, 16)}`,
  pause: "Pause",
  resume: "Resume",
  live: "Live",
  paused: "Paused",
  lost: "The box does not answer. Trying again.",

  signIn: {
    going: "Going to the sign-in page …",
    failed: (detail: string) => `Signing in did not work: ${detail}`,
    again: "Sign in",
    refused: (detail: string) => `This view is for owners of the box (${detail}).`,
    asSomebodyElse: "Sign in as somebody else",
  },

  load: {
    heading: "Load",
    note: "The last hour of this process, in steps of ten seconds. Calls with audio.",
    waiting: "Waiting",
    running: "Working",
    of: (value: number, most: number) => `${value} of ${most}`,
    calls: "Calls in the last minute",
    latency: "Latency",
    factor: "Real-time factor",
    none: "–",
    seconds: (value: number) => (value < 1 ? `${Math.round(1000 * value)} ms` : `${value.toFixed(2)} s`),
    ratio: (value: number) => value.toFixed(3),
    queuePlot: "Queue",
    latencyPlot: "Latency, ms",
    factorPlot: "Real-time factor",
    median: "median",
    p95: "95 %",
    nothing: "no call yet",
    summary: (name: string, latest: string) => `${name}; latest: ${latest}`,
  },

  calls: {
    heading: "Live calls",
    note: "Calls that are being heard now, oldest first. The score is that of the last checkpoint.",
    none: "No call is being heard.",
    columns: ["Since", "From", "Heard", "Net speech", "Score", "So far", "Request"],
    seconds: (value: number) => `${value.toFixed(1)} s`,
  },

  decisions: {
    heading: "Decisions",
    note: "Newest first. No audio and no names: sessions and profiles are shown by id.",
    none: "No decision yet.",
    columns: ["Time", "Operation", "Decision", "Reason", "Risk", "Reliability", "Session", "Profile"],
    words,
  },

  profiles: {
    heading: "Profiles",
    none: "No profile in this scope.",
    columns: ["Owner", "Kind", "Tag", "Status", "Version", "Speech", "Created", "Profile"],
    obsolete: "Obsolete",
    speech: (seconds: number) => `${seconds.toFixed(1)} s`,
  },

  watchlists: {
    heading: "Watchlists",
    none: "No watchlist in this scope.",
    columns: ["Tag", "Profiles", "Owners", "Watchlist"],
  },

  models: {
    heading: "Models",
    note: "A print is scored by the model that made it until it has moved: from audio that was kept, or with calls that clearly match.",
    none: "No print in this scope.",
    columns: ["Model", "Used for", "Persons", "Fraudsters", "Revision"],
    ofNewPrints: "New prints",
    scored: "Older prints, still scored",
    obsolete: "Not here: not scored",
    moved: (moved: number, all: number) =>
      `${moved.toLocaleString("en")} of ${all.toLocaleString("en")} prints are of the model of new prints. To move those whose audio was kept:`,
    how: "npx vivavoce model migrate",
    count: (value: number) => value.toLocaleString("en"),
  },

  promises: {
    heading: "Promised rates",
    note: "How often impostors exceed the thresholds in comparisons with watchlists and groups, of all replicas and since this model serves. Counts only, no voices.",
    none: "No comparison yet.",
    columns: ["List", "Promised", "Met", "95 % interval", "Comparisons", "Calls", "Verdict"],
    lists: { watchlist: "Watchlists", group: "Groups" },
    verdicts: { holds: "Holds", exceeded: "Exceeded", undecided: "Too few to say" },
    calibrate:
      "Callers of this box exceed a promised rate by more than a factor of two. Fit the thresholds to your own recordings:",
    how: "npx vivavoce calibrate recordings/",
    percent: (rate: number) => `${(100 * rate).toPrecision(2)} %`,
    count: (value: number) => value.toLocaleString("en"),
  },

  pager: {
    previous: "Previous",
    next: "Next",
    label: (table: string) => `Pages of ${table}`,
    page: (number: number) => `Page ${number}`,
  },

  evaluation: {
    heading: "Last evaluation",
    none: "No evaluation yet.",
    how: "npx vivavoce evaluate recordings/",
    howNote: "on this machine leaves its figures and its DET curve here.",
    made: (day: string, name: string) => `${name}, ${day}`,
    condition: "Condition",
    model: "Model",
    sameModel: (revision: string) => `${revision.slice(0, 16)}, as this box`,
    otherModel: (revision: string) => `${revision.slice(0, 16)}, not this box’s`,
    speakers: "Speakers",
    trials: "Trials, same / different",
    unscored: "Not scored",
    eer: "Equal error rate",
    fnmr: (rate: number) => `FNMR at FMR ${100 * rate} %`,
    unresolved: "too few trials",
    cllr: "Cllr",
    percent,
    between: (low: string, high: string) => `${low} to ${high}`,
    plot: "Detection error trade-off",
  },
} as const;
