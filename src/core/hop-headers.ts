// Which header fields pass the gateway. What belongs to one connection, to authentication or to identity never does;
// everything else keeps its order and its duplicates. The same functions serve HTTP/1.1, HTTP/2 and upgrades.

import { Buffer, isUtf8 } from 'node:buffer'
import type { HeaderList } from '../api/stream.ts'

/** Fields of one hop (RFC 9110 section 7.6.1, RFC 9113 section 8.2.2). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** Of a request, besides: who sent it is said anew; `host` becomes `:authority`; http2-settings belongs to h2c. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'authorization', 'host', 'http2-settings'])

/** Prefixes, so that fields of future Kubernetes versions are caught, too. */
const IMPERSONATE_PREFIX = 'impersonate-'
const FRONT_PROXY_PREFIX = 'x-remote-'

const PSEUDO: ReadonlySet<string> = new Set([':method', ':path', ':authority', ':scheme', ':protocol'])
/** token of RFC 9110 section 5.6.2, in lower case as RFC 9113 section 8.2.1 wants it. */
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
/** Anything but visible ASCII, space, tab and obs-text (RFC 9110 section 5.5). */
const BAD_VALUE = /[^\t\x20-\x7e\x80-\xff]/
const BAD_TARGET = /[^\x21-\x7e\x80-\xff]/
/** Neither userinfo nor path belongs into an authority (RFC 9113 section 8.3.1). */
const BAD_AUTHORITY = /[^\x21-\x7e]|[@/\\?#]/
/** Fields of which two would let two readers disagree on where a message ends or whom it is for. */
const SINGLE: ReadonlySet<string> = new Set(['content-length', 'host', 'transfer-encoding'])

/**
 * What of a client's request head goes upstream: no pseudo-header fields, nothing hop by hop, nothing that `connection`
 * names, no credential, no identity. The caller adds its own afterwards, so that a client's `Connection:
 * Impersonate-User` cannot remove it (CVE-2021-31999). `expect` is end to end (RFC 9110 section 10.1.1).
 */
export function upstreamRequestHeaders(list: HeaderList): HeaderList {
  const listed = connectionOptions(list)
  const kept: HeaderList = []
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = (list[i] ?? '').toLowerCase()
    const value = list[i + 1] ?? ''
    if (name.startsWith(':') || NOT_FORWARDED.has(name)) {
      if (name === 'te' && acceptsTrailers(value)) kept.push('te', 'trailers')
      continue
    }
    if (name.startsWith(IMPERSONATE_PREFIX) || name.startsWith(FRONT_PROXY_PREFIX)) continue
    if (listed?.has(name)) continue
    kept.push(name, value)
  }
  return kept
}

/** What of an upstream response head goes to the client; `:status` stays. */
export function clientResponseHeaders(list: HeaderList): HeaderList {
  const listed = connectionOptions(list)
  const kept: HeaderList = []
  // RFC 9110 section 8.6: an interim answer has no length.
  const interim = list[1]?.startsWith('1') === true
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = (list[i] ?? '').toLowerCase()
    if (HOP_BY_HOP.has(name) || name === 'http2-settings') continue
    if (interim && name === 'content-length') continue
    if (listed?.has(name) && !name.startsWith(':')) continue
    kept.push(name, list[i + 1] ?? '')
  }
  return kept
}

/**
 * Notes the client's address in `x-forwarded-for`, behind what is there. Several lines become one: kube-apiserver's
 * audit reads the first line only (apimachinery/pkg/util/net/http.go SourceIPs). Changes `list`.
 */
export function appendForwardedFor(list: HeaderList, address: string): void {
  let first = -1
  for (let i = 0; i + 1 < list.length; ) {
    if (list[i] !== 'x-forwarded-for') {
      i += 2
    } else if (first === -1) {
      first = i
      i += 2
    } else {
      list[first + 1] += `, ${list[i + 1]}`
      list.splice(i, 2)
    }
  }
  if (first === -1) list.push('x-forwarded-for', address)
  else list[first + 1] += `, ${address}`
}

/** The first value of a field; `name` in lower case. */
export function headerValue(list: HeaderList, name: string): string | undefined {
  for (let i = 0; i + 1 < list.length; i += 2) if (list[i] === name) return list[i + 1]
  return undefined
}

/** All values of a field, one for each line; `name` in lower case. */
export function headerValues(list: HeaderList, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i + 1 < list.length; i += 2) if (list[i] === name) values.push(list[i + 1] ?? '')
  return values
}

/**
 * What makes a request head unfit to be decided on, '' when nothing does: names and values that another parser could
 * read differently (header injection), and framing or host said twice (request smuggling, RFC 9112 section 11.2).
 * The answer never holds a value: values can be secrets.
 */
export function requestHeadersProblem(list: HeaderList): string {
  if (list.length % 2 !== 0) return 'a header field without a value'
  let seen: Set<string> | undefined
  let regular = false
  for (let i = 0; i < list.length; i += 2) {
    const name = list[i] ?? ''
    const value = list[i + 1] ?? ''
    if (name.startsWith(':')) {
      if (regular || !PSEUDO.has(name)) return `pseudo-header field ${JSON.stringify(name)} is unknown or out of place`
    } else {
      regular = true
      if (!FIELD_NAME.test(name)) return `header field name ${JSON.stringify(name)} is not a lower-case token`
    }
    if (BAD_VALUE.test(value)) return `header field ${JSON.stringify(name)} has a control character in its value`
    if (!regular || SINGLE.has(name)) {
      seen ??= new Set()
      if (seen.has(name)) return `header field ${JSON.stringify(name)} is given twice`
      seen.add(name)
    }
  }
  return targetProblem(list) || framingProblem(list)
}

function targetProblem(list: HeaderList): string {
  const path = headerValue(list, ':path')
  if (path !== undefined && (path === '' || BAD_TARGET.test(path))) return 'the request target is empty or has a space'
  const authority = headerValue(list, ':authority')
  const host = headerValue(list, 'host')
  if (BAD_AUTHORITY.test(authority ?? '') || BAD_AUTHORITY.test(host ?? '')) return 'the host is malformed'
  if (authority !== undefined && host !== undefined && authority.toLowerCase() !== host.toLowerCase()) {
    return '":authority" and "host" contradict each other'
  }
  return ''
}

function framingProblem(list: HeaderList): string {
  const length = headerValue(list, 'content-length')
  if (length !== undefined && !/^[0-9]{1,16}$/.test(length)) return '"content-length" is not a number'
  const encoding = headerValue(list, 'transfer-encoding')
  if (encoding === undefined) return ''
  if (length !== undefined) return '"content-length" and "transfer-encoding" contradict each other'
  return encoding.toLowerCase() === 'chunked' ? '' : '"transfer-encoding" is not "chunked"'
}

/** Field values are bytes; Kubernetes reads them as UTF-8. `undefined` when they are not. */
export function decodeUtf8(value: string): string | undefined {
  if (isAscii(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** UTF-8 bytes of a text, one character per byte, as field values are kept. */
export function encodeUtf8(value: string): string {
  return isAscii(value) ? value : Buffer.from(value, 'utf8').toString('latin1')
}

function isAscii(value: string): boolean {
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0x7f) return false
  return true
}

/** Names listed by all `connection` lines, in lower case; undefined when there is no such line. */
function connectionOptions(list: HeaderList): Set<string> | undefined {
  let options: Set<string> | undefined
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = list[i]
    if (name?.length !== 10 || name.toLowerCase() !== 'connection') continue
    options ??= new Set()
    for (const option of (list[i + 1] ?? '').split(',')) options.add(option.trim().toLowerCase())
  }
  return options
}

function acceptsTrailers(te: string): boolean {
  return te.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers')
}
