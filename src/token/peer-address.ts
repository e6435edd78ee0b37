import { BlockList, isIP } from "node:net";

/** Who asks: the connection's other end and its `X-Forwarded-For`, in; an address, out. */
export type PeerAddress = (peer: string | undefined, forwardedFor: string | null | undefined) => string;

/** IPv4 inside IPv6, as a socket that listens on both reports it. */
const plain = (address: string): string => address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, "");

const family = (address: string): "ipv4" | "ipv6" => (isIP(address) === 6 ? "ipv6" : "ipv4");

/**
 * `proxies`: addresses and networks (`10.0.0.0/8`) of proxies in front. Anybody can write a header, so it is read from the end, where
 * the nearest proxy writes, and only as far as each entry was written by one of ours. Throws a `TypeError` if it is not an address.
 */
export function createPeerAddress(proxies: readonly string[] = []): PeerAddress {
  const ours = new BlockList();
  for (const proxy of proxies) {
    const [address = "", bits, ...rest] = proxy.split("/");
    const most = isIP(address) === 6 ? 128 : 32;
    if (isIP(address) === 0 || rest.length > 0 || (bits !== undefined && !(/^\d{1,3}$/.test(bits) && +bits <= most)))
      throw new TypeError(`${proxy} is neither an address nor a network such as 10.0.0.0/8`);
    if (bits === undefined) ours.addAddress(address, family(address));
    else ours.addSubnet(address, Number(bits), family(address));
  }
  const isOurs = (address: string): boolean => isIP(address) !== 0 && ours.check(address, family(address));

  return (peer, forwardedFor) => {
    let address = plain(peer ?? "");
    if (proxies.length === 0 || !forwardedFor) return address;
    const entries = forwardedFor.split(",").map((entry) => plain(entry.trim()));
    while (isOurs(address)) {
      const before = entries.pop();
      // A proxy that hides its caller (`unknown`) leaves us with the proxy.
      if (before === undefined || isIP(before) === 0) break;
      address = before;
    }
    return address;
  };
}
