/** A refusal with `{when}` filled in: "in 5 minutes", in the language of the text. `waitSeconds` is the answer's Retry-After. */
export function refusalText(text: string, locale: string, waitSeconds: number): string {
  const inMinutes = waitSeconds >= 60;
  const amount = Math.max(1, Math.ceil(inMinutes ? waitSeconds / 60 : waitSeconds));
  return text.replace("{when}", () =>
    new Intl.RelativeTimeFormat(locale).format(amount, inMinutes ? "minute" : "second"),
  );
}
