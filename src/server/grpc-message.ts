/**
 * gRPC sends printable ASCII unchanged, except `%`. The framework also escapes commas and semicolons, and clients that
 * decode only what must be escaped (grpc-js) would show the escapes to people.
 */
export function plainMessage(trailers: Headers): void {
  const escaped = trailers.get("grpc-message");
  if (escaped === null) return;
  trailers.set(
    "grpc-message",
    decodeURIComponent(escaped).replace(/[^\x20-\x24\x26-\x7e]+/g, (rest) => encodeURIComponent(rest)),
  );
}
