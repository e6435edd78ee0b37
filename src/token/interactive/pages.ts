import { createHash } from "node:crypto";
import { html, raw } from "hono/html";
import type { ProfileCredential } from "../credentials.js";
import type { User } from "../users.js";

type Html = ReturnType<typeof html>;

const STYLE = `
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 42rem; margin: 3rem auto; padding: 0 1rem; }
label { display: block; margin: 0.75rem 0 0.25rem; }
input[type=text], input[type=password], textarea { width: 100%; box-sizing: border-box; padding: 0.5rem; font: inherit; }
button { margin: 1rem 0.5rem 0 0; padding: 0.5rem 1rem; font: inherit; cursor: pointer; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; padding: 0.4rem 0.5rem 0.4rem 0; border-bottom: 1px solid; vertical-align: top; overflow-wrap: anywhere; }
td button { margin: 0; white-space: nowrap; overflow-wrap: normal; }
.trouble { border-left: 0.25rem solid #b00020; padding-left: 0.75rem; }
.secret { border-left: 0.25rem solid #1b5e20; padding-left: 0.75rem; overflow-wrap: anywhere; }
`;

const STYLE_HASH = createHash("sha256").update(STYLE).digest("base64");

/** `formTargets`: where a form of the page may end up, redirects included; browsers hold the whole chain to it. */
export const htmlHeaders = (formTargets: readonly string[] = []): Record<string, string> => ({
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; form-action ${["'self'", ...formTargets].join(" ")}; frame-ancestors 'none'; base-uri 'none'`,
  "X-Frame-Options": "DENY",
  "X-Content-Type-Options": "nosniff",
  // Not no-referrer: that would also blank the Origin of our own forms, which we check.
  "Referrer-Policy": "same-origin",
  "Cache-Control": "no-store",
});

const page = (title: string, body: Html | Html[]): string =>
  String(
    html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title} · vivavoce</title><style>${raw(STYLE)}</style></head>
<body><main><h1>${title}</h1>${body}</main></body>
</html>`,
  );

const trouble = (text: string | undefined): Html | "" =>
  text ? html`<p class="trouble" role="alert">${text}</p>` : "";

export const errorPage = (text: string): string =>
  page("Something went wrong", html`<p class="trouble" role="alert">${text}</p>`);

export const signInPage = (options: {
  action: string;
  formToken: string;
  trouble?: string;
  clientName?: string;
}): string =>
  page(
    "Sign in",
    html`${options.clientName ? html`<p>to go on to <strong>${options.clientName}</strong></p>` : ""}${trouble(options.trouble)}
<form method="post" action="${options.action}">
<input type="hidden" name="form_token" value="${options.formToken}">
<label for="name">User name</label><input id="name" name="name" type="text" autocomplete="username" autocapitalize="none" required autofocus>
<label for="password">Password</label><input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit" name="action" value="sign-in">Sign in</button>
</form>`,
  );

export const consentPage = (options: {
  action: string;
  formToken: string;
  user: User;
  clientName: string;
  redirectUri: string;
}): string =>
  page(
    "Allow access",
    html`<p>You are signed in as <strong>${options.user.name}</strong>.</p>
<p><strong>${options.clientName}</strong> asks to use the management interface (<code>platform-api</code>) in your name for one hour, with your permissions (<strong>${options.user.role}</strong>).</p>
<p>You will go on to <code>${new URL(options.redirectUri).origin}</code>.</p>
<form method="post" action="${options.action}">
<input type="hidden" name="form_token" value="${options.formToken}">
<button type="submit" name="action" value="allow">Allow</button>
<button type="submit" name="action" value="deny">Deny</button>
</form>`,
  );

const credentialRow = (credential: ProfileCredential, formToken: string): Html =>
  html`<tr>
<td>${credential.label}</td>
<td><code>${credential.clientId}</code></td>
<td>${credential.kind === "service" ? "service account" : credential.redirectUris.map((uri) => html`<code>${uri}</code><br>`)}</td>
<td><form method="post" action="/profile/credentials/delete"><input type="hidden" name="form_token" value="${formToken}"><input type="hidden" name="client_id" value="${credential.clientId}"><button type="submit" aria-label="Delete ${credential.label}">Delete</button></form></td>
</tr>`;

export const profilePage = (options: {
  user: User;
  formToken: string;
  credentials: readonly ProfileCredential[];
  created?: { clientId: string; secret: string };
  trouble?: string;
}): string =>
  page(
    "Profile",
    html`<p>Signed in as <strong>${options.user.name}</strong> (${options.user.role}).</p>
<form method="post" action="/sign-out"><input type="hidden" name="form_token" value="${options.formToken}"><button type="submit">Sign out</button></form>
${trouble(options.trouble)}
${
  options.created
    ? html`<div class="secret" role="status"><p>Keep this secret now: it is not shown again.</p><p>Client ID <code id="client-id">${options.created.clientId}</code></p><p>Client secret <code id="client-secret">${options.created.secret}</code></p></div>`
    : ""
}
<h2>Your credentials</h2>
${
  options.credentials.length === 0
    ? html`<p>None yet.</p>`
    : html`<table><thead><tr><th>Label</th><th>Client ID</th><th>Use</th><td></td></tr></thead><tbody>${options.credentials.map((credential) => credentialRow(credential, options.formToken))}</tbody></table>`
}
<h2>New credential</h2>
<form method="post" action="/profile/credentials">
<input type="hidden" name="form_token" value="${options.formToken}">
<label for="label">Label</label><input id="label" name="label" type="text" maxlength="128" required>
<fieldset><legend>Use</legend>
<label><input type="radio" name="kind" value="service" checked> Service account (client credentials)</label>
<label><input type="radio" name="kind" value="user"> User account (authorization code)</label>
</fieldset>
<label for="redirect-uris">Redirect addresses, one on each line (user account)</label><textarea id="redirect-uris" name="redirect_uris" rows="3"></textarea>
<button type="submit">Create</button>
</form>`,
  );
