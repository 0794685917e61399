// Address ranges, compiled to a byte comparison.

import { parseIp } from '../../api/validation/ip-address.ts'

/** An address block: `bytes` (4 or 16) and the number of significant leading bits. */
export interface CompiledCidr {
  readonly bytes: Uint8Array
  readonly bits: number
}

/** Parses `10.0.0.0/8`, `fd00::/8`, or a single address; undefined if it is neither. Bits after the prefix are cleared. */
export function parseCidr(text: string): CompiledCidr | undefined {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const parsed = address.includes('%') ? undefined : parseIp(address)
  if (parsed === undefined) return undefined
  const length = parsed.length * 8
  let bits = length
  if (slash >= 0) {
    bits = prefixLength(text.slice(slash + 1))
    // ::ffff:10.0.0.0/104 is 10.0.0.0/8: the 96 bits of the mapping belong to the prefix.
    if (length === 32 && address.includes(':')) bits -= 96
  }
  if (!(bits >= 0 && bits <= length)) return undefined
  const bytes = Uint8Array.from(parsed)
  for (let bit = bits; bit < length; bit++) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) & ~(0x80 >> (bit & 7))
  return { bytes, bits }
}

function prefixLength(text: string): number {
  if (text === '' || text.length > 3) return Number.NaN
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at)
    if (c < 0x30 || c > 0x39) return Number.NaN
  }
  return Number(text)
}

/** @param address 4 or 16 bytes, as returned by parseIp */
export function inAnyCidr(cidrs: readonly CompiledCidr[], address: Uint8Array): boolean {
  for (const cidr of cidrs) if (inCidr(cidr, address)) return true
  return false
}

function inCidr(cidr: CompiledCidr, address: Uint8Array): boolean {
  // An IPv4 block never contains an IPv6 address, and vice versa: ::/0 is not 0.0.0.0/0.
  if (cidr.bytes.length !== address.length) return false
  const whole = cidr.bits >> 3
  for (let at = 0; at < whole; at++) if (cidr.bytes[at] !== address[at]) return false
  const rest = cidr.bits & 7
  return rest === 0 || (((cidr.bytes[whole] ?? 0) ^ (address[whole] ?? 0)) & (0xff00 >> rest) & 0xff) === 0
}
