// Clients' HTTP/2 connections: the engine's server side over a TLS socket.

import type { Duplex } from 'node:stream'
import type { Http2Counters } from '../../../http2/counters.ts'
import { ENHANCE_YOUR_CALM } from '../../../http2/frames.ts'
import type { LateBodyShare } from '../../../http2/late-bodies.ts'
import { SERVER_LIMITS } from '../../../http2/limits.ts'
import { ServerConnection } from '../../../http2/server.ts'
import type { Peer, RequestHandler } from '../../../kit/api/stream.ts'
import type { OpenHeads } from '../../../kit/core/shares/open-heads.ts'
import { AT } from '../../../kit/io/stalls/steps.ts'
import { EngineSocket } from '../socket/engine-socket.ts'
import { type Unread, unreadOutput } from '../socket/unread-output.ts'

interface Http2ServerLimits {
  /** SETTINGS_MAX_CONCURRENT_STREAMS. */
  readonly maxConcurrentStreams: number
  /** Maximum header list size accepted, bytes. */
  readonly maxHeaderBytes: number
  /** Deadline of the client's preface and SETTINGS. Milliseconds. */
  readonly headerTimeoutMs: number
  /** An idle connection is drained after this time. */
  readonly idleTimeoutMs: number
  /** A connection without a first request by then is drained, too. Default: the engine's. */
  readonly firstRequestTimeoutMs?: number
  /** Accounts for incomplete heads. Default: not counted. */
  readonly heads?: OpenHeads
  /** Bounds the bodies still arriving after their response is complete. Default: bounded per connection only. */
  readonly lateBodies?: LateBodyShare
}

export interface Http2Session {
  /** Two-step GOAWAY (RFC 9113 section 6.8); the connection closes when its last stream has ended. False: already sent. */
  drain(): boolean
  /** A request on it was authenticated. */
  authenticated(): void
  /** Streams opened by the client so far. */
  requests(): number
  /** Resets every stream and closes the connection. */
  destroy(): void
}

/**
 * Serves one connection that negotiated h2.
 * @param counters shared by all connections of a thread
 * @param onAbuse the connection was closed because of the client's abuse: `rapidReset`, ...
 */
export function serveHttp2(
  socket: Duplex,
  peer: Peer,
  limits: Http2ServerLimits,
  counters: Http2Counters,
  handler: RequestHandler,
  onAbuse: (kind: string) => void = () => undefined,
): Http2Session {
  const events = {
    onClosed: (code: number, message: string): void => {
      unreadOutput.delete(unread)
      if (code === ENHANCE_YOUR_CALM) onAbuse(message)
    },
    onWritten: () => undefined,
  }
  const driver = new EngineSocket(socket, events, { counters, payer: peer })
  const engineLimits = {
    ...SERVER_LIMITS,
    maxConcurrentStreams: limits.maxConcurrentStreams,
    maxHeaderListBytes: limits.maxHeaderBytes,
    headTimeoutMs: limits.headerTimeoutMs,
    idleTimeoutMs: limits.idleTimeoutMs,
    ...(limits.firstRequestTimeoutMs !== undefined && { firstRequestMs: limits.firstRequestTimeoutMs }),
  }
  const head = limits.heads?.of(peer)
  const nowMs = performance.now()
  const { lateBodies } = limits
  const connection = new ServerConnection(engineLimits, counters, driver, peer, handler, nowMs, head, lateBodies)
  const unread: Unread = {
    source: () => peer.charge.source,
    bytes: () => connection.unreadBytes + socket.writableLength,
    end: () => connection.abuse('slowRead'),
  }
  unreadOutput.add(unread)
  driver.start(connection, AT.http2)
  return {
    drain: () => connection.drain(performance.now()),
    // Clients open odd-numbered streams (RFC 9113 section 5.1.1).
    requests: () => (connection.lastPeerStream + 1) >> 1,
    authenticated: () => connection.widenWindow(),
    destroy: () => driver.destroy(0),
  }
}
