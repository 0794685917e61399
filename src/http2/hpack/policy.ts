// Which fields an HPACK encoder puts into its table. The table holds some forty fields and evicts the oldest, so what
// differs in each message stays out; identities and credentials always stay out.

import { KNOWN_NAMES } from './static.ts'

/** Into the table at once: few distinct values, sent repeatedly. */
const INDEX_AT_ONCE = 0
/** Into the table when the same value is repeated, with no other new value in between. */
export const ON_REPEAT = 1
/** Differs in each message: literal without indexing. */
const DO_NOT_INDEX = 2
/** A credential or an identity: never-indexed literal, also for every later hop (RFC 7541 section 7.1.3). */
export const NEVER_INDEX = 3

// biome-ignore format: word lists
const POLICIES: ReadonlyMap<string, number> = new Map([
  ...[
    ':method', ':authority', ':scheme', ':status', ':protocol', 'accept', 'accept-encoding', 'accept-language', 'allow',
    'cache-control', 'content-encoding', 'content-type', 'server', 'strict-transport-security', 'te', 'user-agent',
    'vary', 'x-content-type-options', 'x-frame-options', 'content-security-policy', 'alt-svc', 'kubectl-command',
    'x-forwarded-host', 'x-forwarded-proto', 'x-kubernetes-pf-flowschema-uid', 'x-kubernetes-pf-prioritylevel-uid',
  ].map((name): [string, number] => [name, INDEX_AT_ONCE]),
  ...[
    'age', 'audit-id', 'content-length', 'content-range', 'etag', 'expires', 'if-match', 'if-modified-since',
    'if-none-match', 'if-range', 'if-unmodified-since', 'kubectl-session', 'last-modified', 'link', 'location', 'range',
    'referer', 'traceparent', 'tracestate', 'x-request-id',
  ].map((name): [string, number] => [name, DO_NOT_INDEX]),
  ...[
    'authorization', 'cookie', 'set-cookie', 'proxy-authorization', 'www-authenticate', 'proxy-authenticate',
    'impersonate-user', 'impersonate-group', 'impersonate-uid', 'x-remote-user', 'x-remote-group',
  ].map((name): [string, number] => [name, NEVER_INDEX]),
])

/** By number of the known name. */
export const KNOWN_POLICIES: Uint8Array = Uint8Array.from(KNOWN_NAMES, (name) => POLICIES.get(name) ?? ON_REPEAT)

/** Prefixes of names that carry an identity. */
const IDENTITY_PREFIXES: readonly string[] = ['impersonate-', 'x-remote-']

/** The policy of an unknown name. */
export function otherPolicy(name: string): number {
  for (let i = 0; i < IDENTITY_PREFIXES.length; i++) {
    if (name.startsWith(IDENTITY_PREFIXES[i] as string)) return NEVER_INDEX
  }
  return ON_REPEAT
}
