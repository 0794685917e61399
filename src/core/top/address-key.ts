// By what clients are told apart as addresses: an IPv4 address, or the /64 of an IPv6 address, of which one machine has as many as it likes.

import { ipText, parseIp } from '../../api/validation/ip-address.ts'

const IPV6_BYTES = 16
const PREFIX_BYTES = 8

/** Anything else stays as it is. */
export function addressKey(address: string): string {
  if (!address.includes(':')) return address
  const bytes = parseIp(address)
  if (bytes === undefined) return address
  return bytes.length < IPV6_BYTES ? ipText(bytes) : `${ipText(bytes.slice().fill(0, PREFIX_BYTES))}/64`
}
