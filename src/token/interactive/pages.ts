import { createHash } from "node:crypto";
import { html, raw } from "hono/html";
import { readable } from "../../languages.js";
import type { ProfileCredential } from "../credentials.js";
import type { Refusal } from "../refusals/en.js";
import { refusalText } from "../refusals/refusal-text.js";
import type { User } from "../users.js";
import type { Words } from "./strings.js";

type Html = ReturnType<typeof html>;

/** Same colors as the page and the operator view (src/web/style.css); inline, because these pages load nothing. */
const STYLE = `
:root { color-scheme: light dark; --paper: light-dark(#fbfaf8, #101514); --card: light-dark(#fff, #171e1c); --ink: light-dark(#1d2422, #e9efed);
  --soft: light-dark(#5a6562, #a3b0ac); --line: light-dark(#dfe3e0, #2b3532); --accent: light-dark(#0b6e69, #5fd0c5);
  --on-accent: light-dark(#fff, #06211f); --tint: light-dark(#e3f0ee, #16302d); --warn: light-dark(#9a3412, #fdba74);
  font: 400 1.0625rem/1.55 ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
  color: var(--ink); background: var(--paper); -webkit-text-size-adjust: 100%; }
[hidden] { display: none !important; }
*, ::before, ::after { box-sizing: border-box; }
body { overflow-wrap: anywhere; max-width: 42rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; }
body.small { max-width: 27rem; }
header { display: flex; align-items: center; gap: 0.6rem; margin-bottom: 1.5rem; color: var(--ink); font-size: 1.5rem; font-weight: 680; letter-spacing: -0.025em; }
header svg { width: 1.9rem; color: var(--accent); }
h1 { margin: 0; font-size: 1.375rem; font-weight: 650; letter-spacing: -0.012em; }
h2 { margin: 0 0 0.5rem; font-size: 1.1875rem; font-weight: 650; }
p { margin: 0.5rem 0 0; }
section { margin-top: 1.25rem; padding: 1.5rem; border: 1px solid var(--line); border-radius: 18px; background: var(--card); }
.row { display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: 0.5rem 1rem; }
.row p { margin: 0; }
label { display: block; margin-top: 1rem; font-size: 0.9375rem; font-weight: 600; }
input[type=text], input[type=password], textarea { display: block; width: 100%; min-height: 3rem; margin-top: 0.35rem; padding: 0.5rem 0.9rem;
  border: 1px solid color-mix(in srgb, var(--soft) 65%, transparent); border-radius: 12px; background: var(--paper); color: inherit; font: inherit; }
form > label:first-of-type { margin-top: 0; }
fieldset { margin: 1rem 0 0; padding: 0; border: 0; }
legend { padding: 0; font-size: 0.9375rem; font-weight: 600; }
fieldset label { margin-top: 0.35rem; font-weight: 400; }
input[type=radio] { accent-color: var(--accent); }
button { min-height: 2.75rem; padding: 0.3rem 1.15rem; border: 1px solid color-mix(in srgb, var(--soft) 55%, transparent); border-radius: 99px; background: none;
  color: inherit; font: inherit; font-size: 0.9375rem; font-weight: 600; cursor: pointer; }
form > button { margin-top: 1.25rem; margin-right: 0.5rem; }
button.main { border-color: transparent; background: var(--accent); color: var(--on-accent); }
.row form > button { margin: 0; }
summary { cursor: pointer; font-size: 0.9375rem; font-weight: 600; }
details[open] > summary { margin-bottom: 0.5rem; }
button.danger { border-color: var(--warn); color: var(--warn); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 3px; border-radius: 6px; }
a { color: var(--accent); font-weight: 600; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.875rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0.35rem 1rem; margin: 1rem 0 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
ul { margin: 0; padding: 0; list-style: none; }
li { padding: 0.75rem 0; border-top: 1px solid var(--line); }
li:first-child { border-top: 0; }
.soft { color: var(--soft); font-size: 0.9375rem; }
.trouble, .secret { margin-top: 1rem; padding: 0.75rem 1rem; border-radius: 12px; overflow-wrap: anywhere; }
.trouble { box-shadow: inset 0 0 0 1.5px var(--warn); color: var(--warn); font-weight: 600; }
.secret { background: var(--tint); }
@media (max-width: 34rem) { body { padding: 1.25rem 0.9rem 2rem; } section { padding: 1.1rem 1rem; } }
`;

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

const SECURITY_HEADERS = {
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  // Not no-referrer: that would also blank the Origin of our own forms, which we check.
  "Referrer-Policy": "same-origin",
  "Cache-Control": "no-store",
};

/**
 * For the page of `oidc-provider` itself: if somebody else signs in than in another tab, its script sends a form to end the first sign-in.
 * The library adds the hash of its script. The form may end up at any client.
 */
export const LIBRARY_PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...SECURITY_HEADERS,
  "Content-Security-Policy": "default-src 'none'; script-src; frame-ancestors 'none'; base-uri 'none'",
};

/** `formTargets`: addresses where a form may end up, redirects included, because browsers check the whole redirect chain. */
export const htmlHeaders = (formTargets: readonly string[] = []): Record<string, string> => ({
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${["'self'", ...formTargets].join(" ")}; frame-ancestors 'none'; base-uri 'none'`,
  ...SECURITY_HEADERS,
});

const LOGO = raw(
  '<svg viewBox="0 0 28 28" aria-hidden="true"><path d="M4.3 12.3v3.4M9.3 8.8v10.4M14.3 5.3v17.4M19.3 9.3v9.4M24.3 11.8v4.4" fill="none" stroke="currentColor" stroke-linecap="round" stroke-width="2.6"/></svg>',
);

/** A refusal to show in the reader's language, or a detail in English for the developers of the application. */
export type Trouble = { readonly refusal: Refusal; readonly waitSeconds: number } | { readonly detail: string };

/** `small`: a page that contains only a form. */
const page = (words: Words, title: string, body: Html | Html[], width: "small" | "wide" = "small"): string =>
  String(
    html`<!doctype html>
<html lang="${words.locale}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · vivavoce</title><style>${raw(STYLE)}</style></head>
<body class="${width}"><header>${LOGO}vivavoce</header><main><h1>${title}</h1>${body}</main></body>
</html>`,
  );

const alert = (text: string): Html => html`<p class="trouble" role="alert">${text}</p>`;

const troubled = (words: Words, trouble: Trouble): Html =>
  "refusal" in trouble
    ? alert(refusalText(words.refusals[trouble.refusal], words.locale, trouble.waitSeconds))
    : html`${alert(words.error.refused)}<p class="soft" lang="en">${trouble.detail}</p>`;

/** `onward`: where to go on from here. A reload would only send a form again. */
export const errorPage = (
  words: Words,
  trouble: Trouble | "failed",
  onward?: { readonly href: string; readonly text: string },
): string =>
  page(
    words,
    words.error.title,
    html`${trouble === "failed" ? alert(words.error.failed) : troubled(words, trouble)}${onward ? html`<p><a href="${onward.href}">${onward.text}</a></p>` : ""}`,
  );

export const signInPage = (
  words: Words,
  options: {
    action: string;
    formToken: string;
    /** The user name that was entered with a wrong password. */
    refusedName?: string;
    clientName?: string;
  },
): string => {
  const { title, goingOnTo, name, password, action, wrong } = words.signIn;
  const { refusedName } = options;
  const [nameFocus, passwordFocus] = refusedName ? ["", raw("autofocus")] : [raw("autofocus"), ""];
  return page(
    words,
    title,
    html`${options.clientName ? html`<p>${goingOnTo} <strong>${readable(options.clientName)}</strong></p>` : ""}${refusedName === undefined ? "" : alert(wrong)}
<section><form method="post" action="${options.action}">
<input type="hidden" name="form_token" value="${options.formToken}">
<label for="name">${name}</label><input id="name" name="name" type="text" autocomplete="username" autocapitalize="none" value="${refusedName ?? ""}" required ${nameFocus}>
<label for="password">${password}</label><input id="password" name="password" type="password" autocomplete="current-password" required ${passwordFocus}>
<button class="main" type="submit" name="action" value="sign-in">${action}</button>
</form></section>`,
  );
};

export const consentPage = (
  words: Words,
  options: { action: string; formToken: string; user: User; clientName: string; redirectUri: string },
): string => {
  const { title, asked, may, application, user, target, allow, deny } = words.consent;
  return page(
    words,
    title,
    html`<section><p>${asked}</p><p>${may[options.user.role]}</p>
<dl><dt>${application}</dt><dd><strong translate="no">${readable(options.clientName)}</strong></dd>
<dt>${user}</dt><dd><strong translate="no">${options.user.name}</strong> (${words.roles[options.user.role]})</dd>
<dt>${target}</dt><dd><code>${new URL(options.redirectUri).origin}</code></dd></dl>
<form method="post" action="${options.action}">
<input type="hidden" name="form_token" value="${options.formToken}">
<button class="main" type="submit" name="action" value="allow">${allow}</button>
<button type="submit" name="action" value="deny">${deny}</button>
</form></section>`,
  );
};

const credentialRow = ({ profile }: Words, credential: ProfileCredential, formToken: string): Html =>
  html`<li class="row">
<div><strong translate="no">${readable(credential.label)}</strong>, <span class="soft">${profile.kinds[credential.kind]}</span><br><code>${credential.clientId}</code>${credential.redirectUris.map((uri) => html`<br><code>${uri}</code>`)}</div>
<details><summary aria-label="${profile.deleteOf(readable(credential.label))}">${profile.delete}</summary>
<form method="post" action="/profile/credentials/delete"><input type="hidden" name="form_token" value="${formToken}"><input type="hidden" name="client_id" value="${credential.clientId}"><p class="soft">${profile.deleteNote}</p><button class="danger" type="submit">${profile.deleteYes}</button></form></details>
</li>`;

/** As it was entered. */
export interface EnteredCredential {
  readonly label: string;
  readonly kind: string;
  readonly redirectUris: string;
}

export const profilePage = (
  words: Words,
  options: {
    user: User;
    formToken: string;
    credentials: readonly ProfileCredential[];
    /** The operator view of this box, if there is one and the user may see it. */
    operatorPath?: string;
    created?: { clientId: string; secret: string };
    /** The password was changed just now. */
    isChanged?: boolean;
    trouble?: Trouble;
    /** The new credential that was refused, to be corrected. */
    entered?: EnteredCredential;
  },
): string => {
  const { profile, password } = words;
  const { user, formToken, credentials, operatorPath, created, entered } = options;
  const [forService, forUser] = entered?.kind === "user" ? ["", raw("checked")] : [raw("checked"), ""];
  return page(
    words,
    profile.title,
    html`${options.trouble ? troubled(words, options.trouble) : ""}
${options.isChanged ? html`<p class="secret" role="status">${password.changed}</p>` : ""}
${
  created
    ? html`<div class="secret" role="status"><p>${profile.secretOnce}</p><p>${profile.clientId} <code id="client-id">${created.clientId}</code></p><p>${profile.clientSecret} <code id="client-secret">${created.secret}</code></p></div>`
    : ""
}
<section class="row"><p>${profile.signedInAs} <strong>${user.name}</strong> (${words.roles[user.role]}).${operatorPath ? html` <a href="${operatorPath}">${profile.operatorView}</a>` : ""}</p>
<form method="post" action="/sign-out"><input type="hidden" name="form_token" value="${formToken}"><button type="submit">${profile.signOut}</button></form></section>
<section><h2>${profile.credentials}</h2>
<p class="soft">${profile.credentialsNote}</p>
${
  credentials.length === 0
    ? html`<p>${profile.none}</p>`
    : html`<ul>${credentials.map((credential) => credentialRow(words, credential, formToken))}</ul>`
}</section>
<section><h2>${profile.newCredential}</h2>
<form method="post" action="/profile/credentials">
<input type="hidden" name="form_token" value="${formToken}">
<label for="label">${profile.label}</label><input id="label" name="label" type="text" maxlength="128" value="${entered?.label ?? ""}" required>
<fieldset><legend>${profile.use}</legend>
<label><input type="radio" name="kind" value="service" ${forService}> ${profile.service}</label>
<label><input type="radio" name="kind" value="user" ${forUser}> ${profile.user}</label>
</fieldset>
<label for="redirect-uris">${profile.redirectUris}</label><textarea id="redirect-uris" name="redirect_uris" rows="3">${entered?.redirectUris ?? ""}</textarea>
<button class="main" type="submit">${profile.create}</button>
</form></section>
<section><h2>${password.heading}</h2>
<p class="soft">${password.note}</p>
<form method="post" action="/profile/password">
<input type="hidden" name="form_token" value="${formToken}">
<input type="text" name="username" autocomplete="username" value="${user.name}" hidden>
<label for="current">${password.current}</label><input id="current" name="current" type="password" autocomplete="current-password" required>
<label for="new-password">${password.chosen}</label><input id="new-password" name="password" type="password" autocomplete="new-password" minlength="10" maxlength="256" required>
<label for="repeated">${password.repeated}</label><input id="repeated" name="repeated" type="password" autocomplete="new-password" minlength="10" maxlength="256" required>
<button class="main" type="submit">${password.action}</button>
</form></section>`,
    "wide",
  );
};
