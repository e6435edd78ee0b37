import { type Box, form, ISSUER } from "./box.js";

/** A browser without a screen: keeps cookies by path, follows redirects within the box, reads forms. */
export class Browser {
  readonly cookies = new Map<string, { value: string; path: string }>();
  /** All cookies that were set, with their attributes. */
  readonly setCookies: string[] = [];

  constructor(readonly box: Box) {}

  async go(url: string, init: RequestInit = {}): Promise<{ response: Response; url: URL; text: string }> {
    const at = new URL(url, ISSUER);
    if (at.origin !== ISSUER) return { response: new Response(null), url: at, text: "" };
    const cookie = [...this.cookies]
      .filter(([, { path }]) => at.pathname.startsWith(path))
      .map(([name, { value }]) => `${name}=${value}`);
    const headers = {
      ...(init.headers as Record<string, string>),
      ...(cookie.length && { Cookie: cookie.join("; ") }),
    };
    const response = await this.box.fetch(at.href, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      this.setCookies.push(line);
      const [pair, ...attributes] = line.split("; ");
      const [name, value] = pair!.split(/=(.*)/s) as [string, string];
      const path = attributes.find((attribute) => attribute.toLowerCase().startsWith("path="))?.slice(5) ?? "/";
      if (value === "" || /expires=Thu, 01 Jan 1970/i.test(line)) this.cookies.delete(name);
      else this.cookies.set(name, { value, path });
    }
    const location = response.headers.get("Location");
    // Only 303 changes a POST into a GET everywhere.
    if (location && response.status === 303) return this.go(new URL(location, at).href);
    return { response, url: at, text: await response.text() };
  }

  submit(text: string, fields: Record<string, string>, headers: Record<string, string> = { Origin: ISSUER }) {
    const action = /<form method="post" action="([^"]+)"/.exec(text)![1]!.replaceAll("&amp;", "&");
    const token = /name="form_token" value="([^"]+)"/.exec(text)![1]!;
    const init = form(null, { form_token: token, ...fields });
    return this.go(action, { ...init, headers: { ...(init.headers as Record<string, string>), ...headers } });
  }
}
