// Which fields an HPACK encoder puts into its table. The table holds some forty fields and forgets the oldest, so what
// differs in each message stays out; what tells who somebody is stays out for good.

import { KNOWN_NAMES } from './static.ts'

/** Into the table at once: few distinct values, sent again and again. */
export const INDEX_AT_ONCE = 0
/** Into the table when the same value comes again, with no other new value in between. */
export const ON_REPEAT = 1
/** Differs in each message: literal without indexing. */
export const DO_NOT_INDEX = 2
/** A credential or an identity: never-indexed literal, for every hop behind us, too (RFC 7541 section 7.1.3). */
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

/** Prefixes of names that carry an identity, whatever comes behind them. */
const IDENTITY_PREFIXES: readonly string[] = ['impersonate-', 'x-remote-']

/** The policy of a name that is not known. */
export function otherPolicy(name: string): number {
  for (let i = 0; i < IDENTITY_PREFIXES.length; i++) {
    if (name.startsWith(IDENTITY_PREFIXES[i] as string)) return NEVER_INDEX
  }
  return ON_REPEAT
}
