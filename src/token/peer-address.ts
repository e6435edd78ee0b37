import { BlockList, isIP } from "node:net";

/** What a Node server adds to a request; absent without a port. */
export interface NodeBindings {
  readonly incoming?: {
    readonly httpVersionMajor: number;
    readonly socket?: { readonly remoteAddress?: string | undefined };
  };
}

/** Finds the client's address from the address of the connection and its `X-Forwarded-For` header. */
export type PeerAddress = (peer: string | undefined, forwardedFor: string | null | undefined) => string;

/** Unwraps an IPv4 address inside IPv6, as a dual-stack socket reports it, and leaves out a port, which some proxies write. */
const plain = (address: string): string =>
  address.replace(/^\[(.*)\](:\d+)?$|^([\d.]+):\d+$/, "$1$3").replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");

const family = (address: string): "ipv4" | "ipv6" => (isIP(address) === 6 ? "ipv6" : "ipv4");

/** Options of the token pages. */
export interface TransportOptions {
  /** The client's address, for throttle and log. Default: the other end of the connection; forwarded headers count only for named proxies. */
  readonly peerAddress?: PeerAddress;
}

/**
 * `proxies`: addresses and networks (`10.0.0.0/8`) of trusted proxies. Anybody can write the header, so it is read from the end, where
 * the nearest proxy writes, and only while each entry was written by a trusted proxy. Throws a `TypeError` if one is not an address.
 */
export function createPeerAddress(proxies: readonly string[] = []): PeerAddress {
  const ours = new BlockList();
  for (const proxy of proxies) {
    const [address = "", bits, ...rest] = proxy.split("/");
    const most = isIP(address) === 6 ? 128 : 32;
    if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && +bits <= most)))
      throw new TypeError(`a proxy must be an address or a network such as 10.0.0.0/8, got ${proxy}`);
    if (bits === undefined) ours.addAddress(address, family(address));
    else ours.addSubnet(address, Number(bits), family(address));
  }
  const isOurs = (address: string): boolean => isIP(address) !== 0 && ours.check(address, family(address));

  return (peer, forwardedFor) => {
    let address = plain(peer ?? "");
    // Only entries that count are read: anybody may send thousands.
    for (let rest = forwardedFor ?? ""; rest !== "" && isOurs(address); ) {
      const comma = rest.lastIndexOf(",");
      const before = plain(rest.slice(comma + 1).trim());
      // If a proxy hides its caller (`unknown`), the proxy's own address is used.
      if (isIP(before) === 0) break;
      address = before;
      rest = rest.slice(0, Math.max(0, comma));
    }
    return address;
  };
}
