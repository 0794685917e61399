// Which response header fields pass the gateway, and helpers for those of a request (request-head.ts). Fields keep their order and
// duplicates. Used for HTTP/1.1, HTTP/2 and upgrades.

import { Buffer, isUtf8 } from 'node:buffer'
import type { HeaderList } from '../../../kit/api/stream.ts'

/**
 * The fields of an upstream response that go to the client, including `:status`. Names are in lower case. Returns the same list if nothing
 * needs to be removed; it may be appended to.
 */
export function clientResponseHeaders(list: HeaderList): HeaderList {
  for (let i = 0; i + 1 < list.length; i += 2) if (isOfOneHop(list[i] ?? '')) return endToEnd(list)
  // RFC 9110 section 8.6: an interim response has no content-length.
  return list[1]?.charCodeAt(0) === 0x31 ? endToEnd(list) : list
}

function endToEnd(list: HeaderList): HeaderList {
  const listed = connectionOptions(list)
  const interim = list[1]?.startsWith('1') === true
  const kept: HeaderList = []
  for (let i = 0; i + 1 < list.length; i += 2) {
    const name = list[i] ?? ''
    if (isOfOneHop(name) || (interim && name === 'content-length')) continue
    if (listed?.has(name) && !name.startsWith(':')) continue
    kept.push(name, list[i + 1] ?? '')
  }
  return kept
}

/** Hop-by-hop fields (RFC 9110 section 7.6.1, RFC 9113 section 8.2.2); http2-settings belongs to h2c. */
function isOfOneHop(name: string): boolean {
  switch (name.length) {
    case 2:
      return name === 'te'
    case 7:
      return name === 'upgrade' || name === 'trailer'
    case 10:
      return name === 'connection' || name === 'keep-alive'
    case 14:
      return name === 'http2-settings'
    case 16:
      return name === 'proxy-connection'
    case 17:
      return name === 'transfer-encoding'
    case 18:
      return name === 'proxy-authenticate'
    case 19:
      return name === 'proxy-authorization'
    default:
      return false
  }
}

/**
 * `fields` without those named in the `connection` lines of `list`. `te` stays: it was already filtered. Returns the same list if none is
 * named.
 */
export function withoutListed(fields: HeaderList, list: HeaderList): HeaderList {
  const listed = connectionOptions(list)
  if (listed === undefined) return fields
  let kept: HeaderList | undefined
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? ''
    if (!listed.has(name) || name === 'te' || name.startsWith(':')) kept?.push(name, fields[i + 1] ?? '')
    else kept ??= fields.slice(0, i)
  }
  return kept ?? fields
}

/**
 * Appends the client's address to `x-forwarded-for`. Joins several lines into one: kube-apiserver's audit reads only the first
 * (apimachinery/pkg/util/net/http.go SourceIPs). Modifies `list`.
 */
export function appendForwardedFor(list: HeaderList, address: string): void {
  let first = -1
  let kept = 0
  // In one pass: a client may send thousands of such lines.
  for (let i = 0; i + 1 < list.length; i += 2) {
    const value = list[i + 1] ?? ''
    if (list[i] === 'x-forwarded-for') {
      if (first >= 0) {
        list[first + 1] += `, ${value}`
        continue
      }
      first = kept
    }
    list[kept] = list[i] ?? ''
    list[kept + 1] = value
    kept += 2
  }
  list.length = kept
  if (first === -1) list.push('x-forwarded-for', address)
  else list[first + 1] += `, ${address}`
}

/** The first value of a field; `name` in lower case. */
export function headerValue(list: HeaderList, name: string): string | undefined {
  for (let i = 0; i + 1 < list.length; i += 2) if (list[i] === name) return list[i + 1]
  return undefined
}

/** All values of a field, one per line; `name` in lower case. */
export function headerValues(list: HeaderList, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i + 1 < list.length; i += 2) if (list[i] === name) values.push(list[i + 1] ?? '')
  return values
}

/** Field values are bytes; Kubernetes reads them as UTF-8. `undefined` if they are not. */
export function decodeUtf8(value: string): string | undefined {
  if (isAscii(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** The UTF-8 bytes of a text, one character per byte, which is how field values are stored. */
export function encodeUtf8(value: string): string {
  return isAscii(value) ? value : Buffer.from(value, 'utf8').toString('latin1')
}

function isAscii(value: string): boolean {
  for (let i = 0; i < value.length; i++) if (value.charCodeAt(i) > 0x7f) return false
  return true
}

/** Names listed in all `connection` lines, in lower case; undefined if there is no such line. */
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

/** Whether a `te` field accepts trailers. */
export function listsTrailers(te: string): boolean {
  return te === 'trailers' || te.split(',').some((coding) => coding.trim().toLowerCase() === 'trailers')
}
