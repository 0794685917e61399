// Parses a client's request head in one pass: validity, what the request path needs, and the fields that go upstream. Used for HTTP/1.1,
// HTTP/2 and upgrades.

import type { HeaderList } from '../../../kit/api/stream.ts'
import { appendForwardedFor, headerValue, listsTrailers, withoutListed } from './hop-headers.ts'
import { TOKEN_PROTOCOL, withoutWebSocketToken } from './websocket-token.ts'

/** A parsed request head. All strings are as received. */
export class RequestHead {
  /** Why the head is invalid; '' = it is valid. Never contains a field value: values can be secrets. */
  problem = ''
  method = ''
  /** The raw request target. */
  target = ''
  /** `:authority`, else `host`; '' if there is neither. */
  host = ''
  userAgent = ''
  /** As sent by the client. */
  auditId = ''
  /** As sent by the client; '' = none. */
  traceparent = ''
  /** The first, if there are several lines. */
  authorization: string | undefined = undefined
  /** Characters of names and values, as far as the head was read. */
  bytes = 0
  /** Whether any field requests impersonation. */
  impersonates = false
  /** The protocol requested by `upgrade`; '' = none. */
  upgrade = ''
  /**
   * The fields for upstream, except those added by `sendTo` and the caller: no hop-by-hop fields and none that carries an identity. The
   * first UPSTREAM_PSEUDO items are the pseudo-header fields. Empty if the head is invalid.
   */
  fields: HeaderList = []
}

/** Characters of `connection`, `te` and `sec-websocket-protocol` together: fields that the gateway itself parses. */
export const MAX_LISTED_LENGTH: number = 64 * 1024

/** Items that pseudo-header fields take up at the head of `fields`. */
export const UPSTREAM_PSEUDO = 8

// Kinds of field names. First those that must not occur twice, because two parsers could then disagree on where a message ends or which
// host it is for: pseudo-header fields, host, framing.
const METHOD = 0
const PATH = 1
const AUTHORITY = 2
const SCHEME = 3
const PROTOCOL = 4
const HOST = 5
const CONTENT_LENGTH = 6
const TRANSFER_ENCODING = 7
const USER_AGENT = 8
const AUDIT_ID = 9
const AUTHORIZATION = 10
const CONNECTION = 11
const TE = 12
const UPGRADE = 13
const FORWARDED_FOR = 14
const SUBPROTOCOLS = 15
const IMPERSONATION = 16
const DROPPED = 17
const KEPT = 18
const MALFORMED = 19
const TRACEPARENT = 20
const FIRST_PSEUDO = METHOD
const LAST_PSEUDO = PROTOCOL
const LAST_SINGLE = TRANSFER_ENCODING

const KINDS: ReadonlyMap<string, number> = new Map([
  [':method', METHOD],
  [':path', PATH],
  [':authority', AUTHORITY],
  [':scheme', SCHEME],
  [':protocol', PROTOCOL],
  ['host', HOST],
  ['content-length', CONTENT_LENGTH],
  ['transfer-encoding', TRANSFER_ENCODING],
  ['user-agent', USER_AGENT],
  // The gateway's own is added at the end: the client's value if it is usable.
  ['audit-id', AUDIT_ID],
  ['authorization', AUTHORIZATION],
  ['connection', CONNECTION],
  ['te', TE],
  ['upgrade', UPGRADE],
  ['x-forwarded-for', FORWARDED_FOR],
  ['sec-websocket-protocol', SUBPROTOCOLS],
  // Hop-by-hop (RFC 9110 section 7.6.1, RFC 9113 section 8.2.2); http2-settings belongs to h2c.
  ['keep-alive', DROPPED],
  ['proxy-authenticate', DROPPED],
  ['proxy-authorization', DROPPED],
  ['proxy-connection', DROPPED],
  ['trailer', DROPPED],
  ['http2-settings', DROPPED],
  // In nearly every request, and known to be valid names.
  ['accept', KEPT],
  ['accept-encoding', KEPT],
  ['content-type', KEPT],
  ['kubectl-command', KEPT],
  ['kubectl-session', KEPT],
  ['tracestate', KEPT],
  ['traceparent', TRACEPARENT],
])

/** Prefixes, to catch fields of future Kubernetes versions, too. */
const IMPERSONATE_PREFIX = 'impersonate-'
const FRONT_PROXY_PREFIX = 'x-remote-'

/** token of RFC 9110 section 5.6.2, in lower case as required by RFC 9113 section 8.2.1. */
const NAME_CHARACTERS: Uint8Array = characters("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")

/**
 * Parses `list`. A name or value that another parser could read differently (header injection), or a repeated framing field or host
 * (request smuggling, RFC 9112 section 11.2), makes the head invalid.
 * @param address the client's, for `x-forwarded-for`
 * @param checked whether the octets of the values were already checked by the same rule: HTTP/2 does so when a field enters its table, once
 * for all requests that refer to it (src/http2/hpack/field-rules.ts)
 */
export function readRequestHead(list: HeaderList, address: string, checked: boolean): RequestHead {
  const head = new RequestHead()
  head.problem = list.length % 2 === 0 ? walk(head, list, address, checked) : 'a header field without a value'
  if (head.problem !== '') head.fields = []
  return head
}

// Bits for the single fields seen, by kind; these bits record what else was seen.
const SEEN_CONNECTION = 1 << 20
const SEEN_FORWARDED_FOR = 1 << 21
const SEEN_TOKEN_PROTOCOL = 1 << 22

function walk(head: RequestHead, list: HeaderList, address: string, checked: boolean): string {
  const fields: HeaderList = [':method', '', ':path', '', ':authority', '', ':scheme', '']
  head.fields = fields
  let seen = 0
  let listed = 0
  let regular = false
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i] ?? ''
    const value = list[i + 1] ?? ''
    head.bytes += name.length + value.length
    const kind = KINDS.get(name) ?? unknownKind(name)
    if (kind === MALFORMED) return malformedName(name)
    if (kind < FIRST_PSEUDO || kind > LAST_PSEUDO) regular = true
    else if (regular) return outOfPlace(name)
    if (!checked && !isFieldValue(value))
      return `header field ${JSON.stringify(name)} has a control character in its value`
    if (kind === CONNECTION || kind === TE || kind === SUBPROTOCOLS) {
      listed += value.length
      if (listed > MAX_LISTED_LENGTH) return LISTED_TOO_LONG
    }
    if (kind <= LAST_SINGLE) {
      if ((seen & (1 << kind)) !== 0) return `header field ${JSON.stringify(name)} is given twice`
      seen |= 1 << kind
    }
    switch (kind) {
      case KEPT:
        fields.push(name, value)
        break
      case METHOD:
        head.method = value
        break
      case PATH:
        head.target = value
        break
      case AUTHORITY:
        head.host = value
        break
      case HOST:
        if (head.host === '') head.host = value
        break
      case CONTENT_LENGTH:
        fields.push(name, value)
        break
      case USER_AGENT:
        head.userAgent = value
        fields.push(name, value)
        break
      case AUDIT_ID:
        head.auditId = value
        break
      case AUTHORIZATION:
        head.authorization ??= value
        break
      case CONNECTION:
        seen |= SEEN_CONNECTION
        break
      case TE:
        if (listsTrailers(value)) fields.push('te', 'trailers')
        break
      case UPGRADE:
        if (head.upgrade === '') head.upgrade = value
        break
      case FORWARDED_FOR:
        seen |= SEEN_FORWARDED_FOR
        fields.push(name, value)
        break
      case SUBPROTOCOLS:
        if (value.includes(TOKEN_PROTOCOL)) seen |= SEEN_TOKEN_PROTOCOL
        fields.push(name, value)
        break
      case TRACEPARENT:
        head.traceparent = head.traceparent === '' ? value : REPEATED
        fields.push(name, value)
        break
      case IMPERSONATION:
        head.impersonates = true
        break
      default:
    }
  }
  if ((seen & (1 << PATH)) !== 0 && !isTarget(head.target)) return 'the request target is empty or has a space'
  const problem = hostProblem(head.host, list, seen) || framingProblem(list, seen)
  if (problem === '') complete(head, list, seen, address)
  return problem
}

/** Repeated values are invalid and count as none (Trace Context section 3.2). */
const REPEATED = 'repeated'

const LISTED_TOO_LONG = `"connection", "te" and "sec-websocket-protocol" have more than ${MAX_LISTED_LENGTH} characters together, the limit of the gateway`

/** Rare work after the walk; the client's address comes last, so that no `connection` line can remove it. */
function complete(head: RequestHead, list: HeaderList, seen: number, address: string): void {
  if ((seen & SEEN_CONNECTION) !== 0) head.fields = withoutListed(head.fields, list)
  if ((seen & SEEN_TOKEN_PROTOCOL) !== 0) head.fields = withoutWebSocketToken(head.fields)
  if ((seen & SEEN_FORWARDED_FOR) !== 0) appendForwardedFor(head.fields, address)
  else head.fields.push('x-forwarded-for', address)
}

/** A name not in any table. */
function unknownKind(name: string): number {
  if (name.length === 0) return MALFORMED
  for (let i = 0; i < name.length; i++) if (NAME_CHARACTERS[name.charCodeAt(i)] !== 1) return MALFORMED
  if (name.startsWith(IMPERSONATE_PREFIX)) return IMPERSONATION
  return name.startsWith(FRONT_PROXY_PREFIX) ? DROPPED : KEPT
}

function malformedName(name: string): string {
  if (name.startsWith(':')) return outOfPlace(name)
  return `header field name ${JSON.stringify(name)} is not a lower-case token`
}

function outOfPlace(name: string): string {
  return `pseudo-header field ${JSON.stringify(name)} is unknown or out of place`
}

/** Only visible ASCII, space, tab and obs-text (RFC 9110 section 5.5). */
function isFieldValue(value: string): boolean {
  for (let i = 0; i < value.length; i++) {
    const c = value.charCodeAt(i)
    if (c < 0x20 ? c !== 0x09 : c === 0x7f || c > 0xff) return false
  }
  return true
}

/** A field value without blanks and at least one character long. */
function isTarget(target: string): boolean {
  return target !== '' && !target.includes(' ') && !target.includes('\t')
}

/** An authority must have neither userinfo nor path (RFC 9113 section 8.3.1). */
function isAuthority(text: string): boolean {
  if (text === lastAuthority) return true
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x21 || c > 0x7e || c === 0x40 || c === 0x2f || c === 0x5c || c === 0x3f || c === 0x23) return false
  }
  if (text.length <= MAX_DNS_NAME) lastAuthority = text
  return true
}

/** Cache of the last well-formed host: most requests name the same few. */
let lastAuthority = ''
const MAX_DNS_NAME = 253

function hostProblem(named: string, list: HeaderList, seen: number): string {
  if (!isAuthority(named)) return 'the host is malformed'
  if ((seen & (1 << HOST)) === 0 || (seen & (1 << AUTHORITY)) === 0) return ''
  const authority = headerValue(list, ':authority') ?? ''
  const host = headerValue(list, 'host') ?? ''
  if (!isAuthority(host)) return 'the host is malformed'
  return authority.toLowerCase() === host.toLowerCase() ? '' : '":authority" and "host" contradict each other'
}

function framingProblem(list: HeaderList, seen: number): string {
  const hasLength = (seen & (1 << CONTENT_LENGTH)) !== 0
  if (hasLength && !isLength(headerValue(list, 'content-length') ?? '')) return '"content-length" is not a number'
  if ((seen & (1 << TRANSFER_ENCODING)) === 0) return ''
  if (hasLength) return '"content-length" and "transfer-encoding" contradict each other'
  return headerValue(list, 'transfer-encoding')?.toLowerCase() === 'chunked'
    ? ''
    : '"transfer-encoding" is not "chunked"'
}

/** 1*DIGIT, small enough for an exact number. */
function isLength(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0x30 || c > 0x39) return false
  }
  return text.length > 0 && text.length <= 16
}

function characters(allowed: string): Uint8Array {
  const table = new Uint8Array(128)
  for (let i = 0; i < allowed.length; i++) table[allowed.charCodeAt(i)] = 1
  return table
}
