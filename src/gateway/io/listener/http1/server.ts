// Clients' HTTP/1.1 connections: the engine of connection.ts over TLS sockets. Each request becomes a Stream, as over HTTP/2.
// Upgrades (exec, attach, port-forward) exist only here; they are passed on with the raw socket.

import type { TLSSocket } from 'node:tls'
import type { HeaderList, Peer, RequestHandler } from '../../../../kit/api/stream.ts'
import type { UpgradeHandler } from '../../../../kit/api/upgrade.ts'
import type { OpenHeads } from '../../../../kit/core/shares/open-heads.ts'
import { AT } from '../../../../kit/io/stalls/steps.ts'
import { EngineSocket } from '../../socket/engine-socket.ts'
import { type Unread, unreadOutput } from '../../socket/unread-output.ts'
import { Http1Connection, type Http1ConnectionLimits, type Http1Serving } from './connection.ts'
import { UpgradeAnswer } from './upgrade-answer.ts'

interface Http1ServerLimits extends Http1ConnectionLimits {
  /** Accounts for incomplete heads. Default: not counted. */
  readonly heads?: OpenHeads
}

export interface Http1Server {
  /** Takes over a connection that negotiated http/1.1 or nothing. */
  serve(socket: TLSSocket, peer: Peer): void
  /** From now on every response closes its connection; idle connections stay. */
  leave(): void
  /** No new requests on idle connections; running ones get `Connection: close`. */
  drain(): void
  /** The next response on this connection is its last. False: it already was. */
  drainConnection(socket: TLSSocket): boolean
  close(): void
}

/** A connection and its socket. */
interface Served {
  readonly socket: TLSSocket
  readonly driver: EngineSocket
  readonly connection: Http1Connection
}

export function createHttp1Server(
  limits: Http1ServerLimits,
  handler: RequestHandler,
  onUpgrade: UpgradeHandler,
): Http1Server {
  const all = new Map<TLSSocket, Served>()
  const serving: Http1Serving = { limits, handler, draining: false }
  return {
    serve(socket, peer) {
      const served = serveConnection(socket, peer, limits, serving, (list, first) =>
        handOver(served, list, first, onUpgrade),
      )
      all.set(socket, served)
      socket.once('close', () => all.delete(socket))
    },
    drainConnection(socket) {
      const connection = all.get(socket)?.connection
      if (connection === undefined || connection.draining) return false
      connection.draining = true
      return true
    },
    leave() {
      serving.draining = true
    },
    drain() {
      serving.draining = true
      // After the event loop has read pending input: a request that has already arrived is answered.
      setImmediate(() => {
        for (const { connection, driver } of all.values()) {
          if (connection.isIdle && !driver.isWaiting) connection.destroy(0)
        }
      })
    },
    close() {
      for (const { socket } of all.values()) socket.destroy()
    },
  }
}

function serveConnection(
  socket: TLSSocket,
  peer: Peer,
  { heads }: Http1ServerLimits,
  serving: Http1Serving,
  onUpgrade: (list: HeaderList, first: Buffer) => void,
): Served {
  const unread: Unread = {
    source: () => peer.charge.source,
    bytes: () => connection.unreadBytes + socket.writableLength,
    end: () => driver.abort(),
  }
  unreadOutput.add(unread)
  const events = { onClosed: () => unreadOutput.delete(unread), onWritten: () => undefined }
  const driver = new EngineSocket(socket, events, { payer: peer })
  const connection = new Http1Connection(serving, driver, peer, heads?.of(peer), onUpgrade)
  driver.start(connection, AT.http1)
  return { socket, driver, connection }
}

/** The socket is the new protocol's, together with what has come behind the request. */
function handOver({ socket, driver, connection }: Served, list: HeaderList, first: Buffer, onUpgrade: UpgradeHandler) {
  driver.release()
  const { peer } = connection
  const answer = new UpgradeAnswer(socket, first, peer)
  answer.events = onUpgrade(peer, answer, list, { socket, first })
  socket.once('close', () => answer.onClosed())
}
