// Who a client without a name is: what its address says, and no more.

import { canonicalIp, parseIp } from '../api/ip-address.ts'

/** An IPv6 host has a network of this many octets to itself (RFC 4291 section 2.5.4), and may use any address in it. */
const NETWORK_OCTETS = 8

/** One text for an IPv4 address (mapped into IPv6 or not), and for each IPv6 network of 64 bits: `2001:db8:0:1::/64`. */
export function sourceOf(address: string): string {
  const octets = parseIp(address)
  if (octets === undefined) return address
  if (octets.length === 4) return octets.join('.')
  let groups = ''
  for (let at = 0; at < NETWORK_OCTETS; at += 2)
    groups += `${(((octets[at] ?? 0) << 8) | (octets[at + 1] ?? 0)).toString(16)}:`
  return `${canonicalIp(`${groups}:`) ?? groups}/64`
}
