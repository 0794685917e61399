// Upgraded connections (exec, attach, port-forward, WebSocket proxying): HTTP/1.1 only, a socket instead of a stream.

import type { HeaderList, Peer, Stream, StreamEvents } from './stream.ts'

/** The client's half of an upgrade. Only src/gateway/io/ looks inside `socket`. */
export interface ClientUpgrade {
  readonly socket: unknown
  /** Bytes that followed the request head. */
  readonly first: Buffer
}

/**
 * Called for a request that asks to upgrade to SPDY/3.1 or WebSocket. `answer` serves every response but 101; it must not be used once the socket has
 * been switched.
 */
export type UpgradeHandler = (peer: Peer, answer: Stream, head: HeaderList, client: ClientUpgrade) => StreamEvents
