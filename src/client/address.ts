/** The address of a box without a slash at its end. In a page, it may be relative to the page. */
export function addressOf(url: string | URL): string {
  const text = url instanceof URL ? url.href : url;
  const base = globalThis.location?.href;
  if (typeof text !== "string" || !URL.canParse(text, base) || !/^https?:$/.test(new URL(text, base).protocol))
    throw new TypeError(`url must be an address such as https://voice.example.com:8080, got ${url}`);
  return text.replace(/\/+$/, "");
}

/** Where a box takes live calls. */
export function liveAddressOf(url: string | URL): string {
  const address = new URL(`${addressOf(url)}/v1/live`, globalThis.location?.href);
  address.protocol = address.protocol.replace("http", "ws");
  return address.href;
}
