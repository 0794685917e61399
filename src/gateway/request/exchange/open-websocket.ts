// A request for a WebSocket that the gateway answers itself.

import type { HeaderList } from '../../../kit/api/stream.ts'
import type { Refusal } from '../../../kit/core/refusal/refusal.ts'
import { readHandshake } from '../../core/websocket/handshake.ts'
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
