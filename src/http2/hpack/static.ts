// Known field names: the static table (RFC 7541 appendix A), and the names that Kubernetes and
// proxies send all the time. Every name here has a number, and one string that all decoded lists share.

/** The static table, from index 1 on: name, value, name, value, ... */
// biome-ignore format: one entry a line would hide the numbers
const STATIC_TABLE: readonly string[] = [
  ':authority', '', ':method', 'GET', ':method', 'POST', ':path', '/', ':path', '/index.html',
  ':scheme', 'http', ':scheme', 'https', ':status', '200', ':status', '204', ':status', '206',
  ':status', '304', ':status', '400', ':status', '404', ':status', '500', 'accept-charset', '',
  'accept-encoding', 'gzip, deflate', 'accept-language', '', 'accept-ranges', '', 'accept', '',
  'access-control-allow-origin', '', 'age', '', 'allow', '', 'authorization', '', 'cache-control', '',
  'content-disposition', '', 'content-encoding', '', 'content-language', '', 'content-length', '',
  'content-location', '', 'content-range', '', 'content-type', '', 'cookie', '', 'date', '', 'etag', '',
  'expect', '', 'expires', '', 'from', '', 'host', '', 'if-match', '', 'if-modified-since', '',
  'if-none-match', '', 'if-range', '', 'if-unmodified-since', '', 'last-modified', '', 'link', '',
  'location', '', 'max-forwards', '', 'proxy-authenticate', '', 'proxy-authorization', '', 'range', '',
  'referer', '', 'refresh', '', 'retry-after', '', 'server', '', 'set-cookie', '',
  'strict-transport-security', '', 'transfer-encoding', '', 'user-agent', '', 'vary', '', 'via', '',
  'www-authenticate', '',
]

/** Entries of the static table; the dynamic table begins behind them. */
export const STATIC_COUNT: number = STATIC_TABLE.length / 2

/** By index, from 1. */
export const STATIC_NAMES: readonly string[] = ['', ...STATIC_TABLE.filter((_, i) => i % 2 === 0)]
export const STATIC_VALUES: readonly string[] = ['', ...STATIC_TABLE.filter((_, i) => i % 2 === 1)]

/** Names beyond the static table that are common enough to be known. */
// biome-ignore format: a word list
const MORE_NAMES: readonly string[] = [
  ':protocol',
  // Connection-specific (RFC 9113 section 8.2.2): known in order to be refused.
  'connection', 'keep-alive', 'proxy-connection', 'te', 'upgrade',
  'audit-id', 'warning', 'x-kubernetes-pf-flowschema-uid', 'x-kubernetes-pf-prioritylevel-uid', 'kubectl-command',
  'kubectl-session', 'impersonate-user', 'impersonate-group', 'impersonate-uid', 'x-remote-user', 'x-remote-group',
  'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'x-request-id',
  'x-stream-protocol-version', 'traceparent', 'tracestate', 'baggage', 'origin', 'priority', 'trailer', 'http2-settings',
  'x-content-type-options', 'x-frame-options', 'content-security-policy', 'alt-svc',
]

/** Every known name, by number; those of the static table first, in its order. */
export const KNOWN_NAMES: readonly string[] = [...new Set([...STATIC_NAMES.slice(1), ...MORE_NAMES])]

/** The number of a known name. */
export const KNOWN_NUMBERS: ReadonlyMap<string, number> = new Map(KNOWN_NAMES.map((name, i) => [name, i]))

/** For a known name's number, the first entry of the static table with that name; 0 when there is none. */
export const STATIC_INDEX: Uint8Array = Uint8Array.from(KNOWN_NAMES, (name) => Math.max(0, STATIC_NAMES.indexOf(name)))

/** For an entry of the static table, the number of its name. */
export const STATIC_NUMBERS: Uint8Array = Uint8Array.from(STATIC_NAMES, (name) => KNOWN_NUMBERS.get(name) ?? 0)

/** A power of two, several times the number of names: the chains below stay at one or two names. */
const BUCKETS = 512
/** The first known name in each bucket, and the next one behind each name: number + 1, or 0. */
const FIRST: Uint8Array = new Uint8Array(BUCKETS)
const NEXT: Uint8Array = new Uint8Array(KNOWN_NAMES.length)

for (let number = 0; number < KNOWN_NAMES.length; number++) {
  const octets = Buffer.from(KNOWN_NAMES[number] as string, 'latin1')
  const bucket = bucketOf(octets, 0, octets.length)
  NEXT[number] = FIRST[bucket] as number
  FIRST[bucket] = number + 1
}

/** Needs at least one octet. Names differ most at their ends and in the middle. */
function bucketOf(octets: Uint8Array, from: number, to: number): number {
  const first = octets[from] as number
  const middle = octets[(from + to) >>> 1] as number
  const last = octets[to - 1] as number
  return (first * 5 + middle * 23 + last * 71 + (to - from) * 131) & (BUCKETS - 1)
}

/** The number of the known name that these octets spell; -1 for any other name. */
export function knownNumber(octets: Uint8Array, from: number, to: number): number {
  if (from >= to) return -1
  for (let link = FIRST[bucketOf(octets, from, to)] as number; link !== 0; link = NEXT[link - 1] as number) {
    if (spells(octets, from, to, KNOWN_NAMES[link - 1] as string)) return link - 1
  }
  return -1
}

function spells(octets: Uint8Array, from: number, to: number, name: string): boolean {
  if (name.length !== to - from) return false
  for (let i = 0; i < name.length; i++) if (octets[from + i] !== name.charCodeAt(i)) return false
  return true
}
