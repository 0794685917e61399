// The raw request target: its forms (RFC 9112 section 3.2) and percent-decoding like Go's net/url. Never use `new URL()`: it resolves `..`,
// `%2e%2e` and `\`, and reads `//x` as a host.

const PERCENT = 0x25
const PLUS = 0x2b

/** Start of the path of an absolute-form target (its length if it has none), or -1 for every other form. */
export function absoluteFormPath(target: string): number {
  const authority = authorityStart(target)
  if (authority < 0) return -1
  for (let at = authority; at < target.length; at++) {
    const c = target.charCodeAt(at)
    if (c === 0x2f || c === 0x3f) return at
  }
  return target.length
}

/** The host and port that an absolute-form target names; '' for every other form. */
export function absoluteFormAuthority(target: string): string {
  const path = absoluteFormPath(target)
  if (path < 0) return ''
  const authority = target.slice(authorityStart(target), path)
  return authority.slice(authority.lastIndexOf('@') + 1)
}

/** The target for an apiserver: origin-form, whatever form the client used; `*` stays. */
export function originForm(target: string): string {
  const path = absoluteFormPath(target)
  if (path < 0) return target
  return target.charCodeAt(path) === 0x2f ? target.slice(path) : `/${target.slice(path)}`
}

function authorityStart(target: string): number {
  const colon = target.indexOf('://')
  if (colon <= 0) return -1
  // scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." ), RFC 3986 section 3.1
  for (let at = 0; at < colon; at++) {
    const c = target.charCodeAt(at)
    const letter = (c >= 0x61 && c <= 0x7a) || (c >= 0x41 && c <= 0x5a)
    const other = (c >= 0x30 && c <= 0x39) || c === PLUS || c === 0x2d || c === 0x2e
    if (!letter && !(other && at > 0)) return -1
  }
  return colon + 3
}

/** The path that `raw` encodes; undefined if a `%` is not followed by two hex digits. */
export function decodePath(raw: string): string | undefined {
  return decode(raw, false)
}

/** A key or value of a query: like a path, but `+` is a space. */
export function decodeQueryPart(raw: string): string | undefined {
  return decode(raw, true)
}

function decode(raw: string, plusIsSpace: boolean): string | undefined {
  // From a connection, one character is one byte. Others occur only on a command line.
  const bytes = Buffer.from(raw, isLatin1(raw) ? 'latin1' : 'utf8')
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    let byte = bytes[at] ?? 0
    if (byte === PERCENT) {
      const high = hexDigit(bytes[at + 1] ?? 0)
      const low = hexDigit(bytes[at + 2] ?? 0)
      if (high < 0 || low < 0) return undefined
      byte = high * 16 + low
      at += 2
    } else if (byte === PLUS && plusIsSpace) {
      byte = 0x20
    }
    bytes[length++] = byte
  }
  // Bytes that are not UTF-8 become U+FFFD.
  return bytes.toString('utf8', 0, length)
}

function isLatin1(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0xff) return false
  return true
}

function hexDigit(c: number): number {
  if (c >= 0x30 && c <= 0x39) return c - 0x30
  const lower = c | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}
