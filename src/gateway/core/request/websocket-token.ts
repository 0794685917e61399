// The bearer token of a request: from Authorization, or from the WebSocket subprotocol that browsers use instead
// (apiserver/pkg/authentication/request/bearertoken and .../websocket/protocol.go).

import { Buffer, isUtf8 } from 'node:buffer'
import type { HeaderList } from '../../../kit/api/stream.ts'
import { decodeUtf8, headerValue, headerValues } from './hop-headers.ts'

export type BearerToken =
  /** No token is offered: the next authentication method is tried. */
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string; readonly from: 'header' | 'websocket' }
  /** An invalid token is offered: 401, never anonymous. */
  | { readonly kind: 'invalid'; readonly message: string }

/** Prefix of a subprotocol that carries a token. */
export const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.'
/**
 * Maximum characters of a field with a token. Bounded because each unknown token is sent upstream for review; service account tokens have
 * about a thousand characters, those of identity providers some ten thousand.
 */
export const MAX_TOKEN_FIELD_LENGTH: number = 64 * 1024
const PROTOCOLS = 'sec-websocket-protocol'
const WHITE_SPACE = /\p{White_Space}/u
const NONE: BearerToken = { kind: 'none' }

/** Schemes other than Bearer are ignored, as in kube-apiserver; the header comes before the subprotocol. */
export function readBearerToken(list: HeaderList): BearerToken {
  const header = headerToken(headerValue(list, 'authorization'))
  return header.kind === 'none' && isWebSocketRequest(list) ? protocolToken(list) : header
}

/**
 * The list without subprotocols that carry a token; the same list if there is none. For every request, however it was authenticated: a
 * token must not reach upstream next to the gateway's own credential.
 */
export function withoutWebSocketToken(list: HeaderList): HeaderList {
  let carries = false
  for (let i = 0; i + 1 < list.length; i += 2) {
    if (list[i] === PROTOCOLS && list[i + 1]?.includes(TOKEN_PROTOCOL)) carries = true
  }
  if (!carries) return list
  const others = subprotocols(list).filter((protocol) => !protocol.startsWith(TOKEN_PROTOCOL))
  const kept: HeaderList = []
  let written = others.length === 0
  for (let i = 0; i + 1 < list.length; i += 2) {
    if (list[i] !== PROTOCOLS) kept.push(list[i] ?? '', list[i + 1] ?? '')
    else if (!written) {
      kept.push(PROTOCOLS, others.join(','))
      written = true
    }
  }
  return kept
}

function headerToken(value: string | undefined): BearerToken {
  if (value === undefined) return NONE
  if (value.length > MAX_TOKEN_FIELD_LENGTH) return invalid('the authorization field is too long')
  const text = decodeUtf8(value)
  if (text === undefined) return /^\s*bearer /i.test(value) ? invalid('the bearer token is not UTF-8') : NONE
  // At most three parts, separated by single spaces: `Bearer  x` has an empty token, which is ignored.
  const [scheme, token] = trimSpace(text).split(' ', 3)
  if (scheme?.toLowerCase() !== 'bearer' || token === undefined || token === '') return NONE
  return { kind: 'token', token, from: 'header' }
}

function protocolToken(list: HeaderList): BearerToken {
  let token: string | undefined
  let others = 0
  for (const protocol of subprotocols(list)) {
    if (!protocol.startsWith(TOKEN_PROTOCOL)) {
      others++
      continue
    }
    if (token !== undefined) return invalid('multiple base64.bearer.authorization tokens specified')
    token = decodeBase64Url(protocol.slice(TOKEN_PROTOCOL.length))
    if (token === undefined) return invalid('invalid base64.bearer.authorization token encoding')
  }
  if (token === undefined || token === '') return NONE
  // One must remain, to be echoed to the client.
  return others === 0 ? invalid('missing additional subprotocol') : { kind: 'token', token, from: 'websocket' }
}

/** Several header lines are one list (RFC 6455 section 11.3.4). */
function subprotocols(list: HeaderList): string[] {
  return headerValues(list, PROTOCOLS).flatMap((line) => line.split(',').map(trimSpace))
}

/** k8s.io/streaming/pkg/httpstream/wsstream/conn.go IsWebSocketRequest. */
function isWebSocketRequest(list: HeaderList): boolean {
  if (headerValue(list, 'upgrade')?.toLowerCase() !== 'websocket') return false
  return headerValues(list, 'connection').some((line) => line.toLowerCase().includes('upgrade'))
}

/** encoding/base64 RawURLEncoding: no padding. undefined if it is invalid, or not UTF-8. */
function decodeBase64Url(text: string): string | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return undefined
  const bytes = Buffer.from(text, 'base64url')
  return isUtf8(bytes) ? bytes.toString('utf8') : undefined
}

/** Go's strings.TrimSpace; JavaScript's trim() also strips U+FEFF, and leaves U+0085. Linear in the text. */
function trimSpace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start++
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

function invalid(message: string): BearerToken {
  return { kind: 'invalid', message }
}
