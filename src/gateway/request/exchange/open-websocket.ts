// A request for a WebSocket that the gateway answers itself: whether one may be opened, and by which answer.

import type { HeaderList } from '../../../kit/api/stream.ts'
import { type Refusal, refuse } from '../../../kit/core/refusal/refusal.ts'
import { headerValue } from '../../core/request/hop-headers.ts'
import { webSocketAccept } from '../../io/listener/http1/websocket.ts'
import type { Exchange } from './exchange.ts'

/** Not SPDY: kube-apiserver ignores that where it streams nothing. */
export function asksForWebSocket({ upgrade, head }: Pick<Exchange, 'upgrade' | 'head'>): boolean {
  return upgrade !== undefined && head.upgrade.trim().toLowerCase() === 'websocket'
}

/** Fields of the answer that opens it. */
export function openWebSocket({ head }: Pick<Exchange, 'head'>): HeaderList | Refusal {
  const handshake = readHandshake(head.fields)
  if ('refused' in handshake) return handshake
  const { key, protocol } = handshake
  const fields = ['upgrade', 'websocket', 'connection', 'Upgrade', 'sec-websocket-accept', webSocketAccept(key)]
  return protocol === '' ? fields : [...fields, 'sec-websocket-protocol', protocol]
}

// Whether a WebSocket may be opened, by the rules of kube-apiserver's server (golang.org/x/net/websocket, hybi.go ReadHandshake and server.go checkOrigin).

interface Handshake {
  /** Which the server proves to have read. */
  readonly key: string
  /** The subprotocol that is sent back; '' = none. */
  readonly protocol: string
}

const VERSION = '13'
/** What Go's url.ParseRequestURI takes: an absolute URL or path. A browser sends `null` for a page without an origin of its own. */
const ORIGIN = /^(?:[A-Za-z][A-Za-z0-9+.-]*:|\/)/

/** @param fields of a request that asks for one, without tokens */
export function readHandshake(fields: HeaderList): Handshake | Refusal {
  const key = headerValue(fields, 'sec-websocket-key') ?? ''
  if (key === '') return refuse('bad-request', 'a WebSocket needs a Sec-WebSocket-Key')
  if (headerValue(fields, 'sec-websocket-version') !== VERSION)
    return refuse('bad-request', `a WebSocket needs Sec-WebSocket-Version: ${VERSION}`, {
      // RFC 6455 section 4.4.
      fields: ['sec-websocket-version', VERSION],
    })
  // Any origin, but one has to be named: what is sent by pages of others is theirs to refuse who let browsers log in.
  if (!ORIGIN.test(headerValue(fields, 'origin') ?? ''))
    return refuse(
      'websocket-origin',
      'a WebSocket needs an Origin that is a URL, such as that of the page that opens it',
    )
  const [protocol = '', ...others] = (headerValue(fields, 'sec-websocket-protocol') ?? '').split(',')
  // Which of several is meant, it does not choose.
  if (others.length > 0)
    return refuse('bad-request', 'a watch over WebSocket takes one Sec-WebSocket-Protocol beside that of a token')
  return { key, protocol: protocol.trim() }
}
