// IP addresses as bytes and as one canonical text, so that equal addresses compare equal regardless of spelling. IPv4-mapped IPv6 addresses
// (::ffff:10.0.0.1, as a dual-stack socket reports them) count as IPv4 addresses.

const IPV4_BYTES = 4
const IPV6_GROUPS = 8

/** 4 or 16 bytes; undefined if `text` is not an address. Drops a zone (`fe80::1%eth0`). */
export function parseIp(text: string): Uint8Array | undefined {
  if (!text.includes(':')) return parseIpv4(text)
  const bytes = parseIpv6(text)
  return bytes !== undefined && isMapped(bytes) ? bytes.subarray(12) : bytes
}

/** Dotted decimal, or RFC 5952 without brackets; undefined if `text` is not an address. */
export function canonicalIp(text: string): string | undefined {
  const bytes = parseIp(text)
  return bytes === undefined ? undefined : ipText(bytes)
}

/** The canonical text of 4 or 16 bytes. */
export function ipText(bytes: Uint8Array): string {
  if (bytes.length === IPV4_BYTES) return bytes.join('.')
  return isMapped(bytes) ? bytes.subarray(12).join('.') : formatIpv6(bytes)
}

function parseIpv4(text: string): Uint8Array | undefined {
  const fields = text.split('.')
  if (fields.length !== IPV4_BYTES) return undefined
  const bytes = new Uint8Array(IPV4_BYTES)
  for (const [at, field] of fields.entries()) {
    // No leading zeros: some parsers read them as octal.
    if (field.length > 1 && field.startsWith('0')) return undefined
    const value = digits(field, 3, 10)
    if (value < 0 || value > 255) return undefined
    bytes[at] = value
  }
  return bytes
}

function parseIpv6(text: string): Uint8Array | undefined {
  const zone = text.indexOf('%')
  const address = zone < 0 ? text : text.slice(0, zone)
  const gap = address.indexOf('::')
  const head = groups(gap < 0 ? address : address.slice(0, gap), gap < 0)
  const tail = gap < 0 ? [] : groups(address.slice(gap + 2), true)
  if (head === undefined || tail === undefined) return undefined
  const given = head.length + tail.length
  // `::` stands for at least one group.
  if (gap < 0 ? given !== IPV6_GROUPS : given >= IPV6_GROUPS) return undefined
  const bytes = new Uint8Array(IPV6_GROUPS * 2)
  write(bytes, head, 0)
  write(bytes, tail, IPV6_GROUPS - tail.length)
  return bytes
}

/** `fd00:0:1`; `last` permits a dotted IPv4 address at the end. */
function groups(text: string, last: boolean): number[] | undefined {
  if (text === '') return []
  const values: number[] = []
  const fields = text.split(':')
  for (const [at, field] of fields.entries()) {
    if (field.includes('.')) {
      const ipv4 = last && at === fields.length - 1 ? parseIpv4(field) : undefined
      if (ipv4 === undefined) return undefined
      const [a = 0, b = 0, c = 0, d = 0] = ipv4
      values.push(a * 256 + b, c * 256 + d)
      continue
    }
    const value = digits(field, 4, 16)
    if (value < 0) return undefined
    values.push(value)
  }
  return values
}

function write(bytes: Uint8Array, values: readonly number[], firstGroup: number): void {
  for (const [at, value] of values.entries()) {
    bytes[(firstGroup + at) * 2] = value >> 8
    bytes[(firstGroup + at) * 2 + 1] = value & 0xff
  }
}

/** The number, or -1 if there are no digits, too many, or other characters. */
function digits(text: string, max: number, radix: 10 | 16): number {
  if (text === '' || text.length > max) return -1
  for (let at = 0; at < text.length; at++) {
    const c = text.charCodeAt(at)
    const hex = radix === 16 && (c | 0x20) >= 0x61 && (c | 0x20) <= 0x66
    if (!hex && (c < 0x30 || c > 0x39)) return -1
  }
  return Number.parseInt(text, radix)
}

function isMapped(bytes: Uint8Array): boolean {
  for (let at = 0; at < 10; at++) if (bytes[at] !== 0) return false
  return bytes[10] === 0xff && bytes[11] === 0xff
}

function formatIpv6(bytes: Uint8Array): string {
  const values: string[] = []
  for (let at = 0; at < bytes.length; at += 2)
    values.push((((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)).toString(16))
  // The longest run of two or more zero groups, the first of equals, becomes `::` (RFC 5952 section 4.2).
  let bestStart = 0
  let bestLength = 1
  for (let start = 0; start < values.length; start++) {
    let length = 0
    while (values[start + length] === '0') length++
    if (length > bestLength) {
      bestStart = start
      bestLength = length
    }
  }
  if (bestLength === 1) return values.join(':')
  return `${values.slice(0, bestStart).join(':')}::${values.slice(bestStart + bestLength).join(':')}`
}
