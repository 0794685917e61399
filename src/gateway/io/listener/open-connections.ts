// How many connections clients have open, at all ports of a thread: strangers, who have not sent a request with a valid credential, and users.
// Each kind has places of its own. Nobody who comes is refused because of others: the source with the most gives one up.

import type { Socket } from 'node:net'
import type { Charge } from '../../../kit/api/stream.ts'
import { Places } from '../../../kit/core/places/places.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'

/** As metrics name them. */
export type ConnectionLimit = 'connections' | 'unauthenticated-connections'

export interface OpenConnectionsOptions {
  /** Of users and strangers together; 0 = any number. */
  readonly max: number
  /** Of strangers, who have these places for themselves; 0 = any number. */
  readonly maxUnauthenticated: number
  /** A connection had to go, because its source has most of them. */
  onGivenUp?(limit: ConnectionLimit, source: string): void
}

/** A user's connection that has to go may finish what runs for this long. */
const LEAVE_MS = 30_000
/** So many may be leaving, of the places: one in this many. Then the oldest of them is closed. */
const LEAVING_PART = 8
/** Strangers never have more than this part of all places: one in this many. */
const STRANGERS_PART = 2

/** One that is open. */
export class OpenConnection {
  readonly socket: Socket
  readonly address: string
  /** The address, or the user since one was authenticated. */
  source: string
  known = false
  leavingSinceMs = 0
  /** Asks the client to go; false: nothing is there to be asked. */
  drain: () => boolean = () => false

  constructor(socket: Socket, address: string, source: string) {
    this.socket = socket
    this.address = address
    this.source = source
  }
}

export class OpenConnections implements Tickable {
  readonly #options: OpenConnectionsOptions
  readonly #strangers: Places<OpenConnection>
  readonly #users: Places<OpenConnection>
  readonly #most: number
  readonly #bySocket = new WeakMap<Socket, OpenConnection>()
  /** The one that leaves for the longest time first. */
  readonly #leaving = new Set<OpenConnection>()

  constructor(options: OpenConnectionsOptions) {
    this.#options = options
    const { max, maxUnauthenticated } = options
    const strangers = max === 0 ? maxUnauthenticated : strangersOf(max, maxUnauthenticated)
    this.#strangers = new Places(strangers, { newestFirst: true })
    // Whoever is here goes on: more users than places would otherwise put each other out, each with a handshake, for ever.
    this.#users = new Places(max === 0 ? 0 : max - strangers, { newestFirst: true, newcomersLeave: true })
    this.#most = max
  }

  /** Of strangers and users, with those that are leaving. */
  counts(): { readonly unauthenticated: number; readonly users: number } {
    return { unauthenticated: this.#strangers.size, users: this.#users.size + this.#leaving.size }
  }

  /** A stranger's connection, until it closes. It may have to go at once. */
  add(socket: Socket, address: string, source: string): OpenConnection {
    const connection = new OpenConnection(socket, address, source)
    this.#bySocket.set(socket, connection)
    this.#strangers.add(connection, source)
    socket.once('close', () => this.#closed(connection))
    this.#makeRoom()
    return connection
  }

  /** @param socket as of `add` */
  of(socket: unknown): OpenConnection | undefined {
    return this.#bySocket.get(socket as Socket)
  }

  /** Whether somebody waits for the gateway on it: then it goes after those that are idle. */
  setBusy(socket: Socket, busy: boolean): void {
    const connection = this.#bySocket.get(socket)
    if (connection !== undefined) this.#strangers.setSpare(connection, !busy)
  }

  /** A request on it was authenticated, the first one. */
  authenticated(connection: OpenConnection, { source }: Charge): void {
    if (connection.known || connection.socket.destroyed) return
    this.#strangers.delete(connection)
    connection.known = true
    connection.source = source
    this.#users.add(connection, source)
    for (let gone = this.#users.toGiveUp(); gone !== undefined; gone = this.#users.toGiveUp()) this.#leave(gone)
  }

  tick(nowMs: number): void {
    for (const connection of this.#leaving) {
      if (nowMs - connection.leavingSinceMs < LEAVE_MS) break
      connection.socket.destroy()
    }
    if (this.#leaving.size === 0) removeTickable(this)
  }

  #makeRoom(): void {
    for (let gone = this.#strangers.toGiveUp(); gone !== undefined; gone = this.#strangers.toGiveUp()) {
      this.#options.onGivenUp?.('unauthenticated-connections', gone.source)
      gone.socket.destroy()
    }
  }

  /** A user may finish what runs, within bounds. */
  #leave(connection: OpenConnection): void {
    this.#options.onGivenUp?.('connections', connection.source)
    connection.leavingSinceMs = performance.now()
    this.#leaving.add(connection)
    addTickable(this)
    connection.drain()
    if (this.#leaving.size <= this.#most / LEAVING_PART) return
    for (const oldest of this.#leaving) {
      this.#leaving.delete(oldest)
      oldest.socket.destroy()
      return
    }
  }

  #closed(connection: OpenConnection): void {
    this.#strangers.delete(connection)
    this.#users.delete(connection)
    this.#leaving.delete(connection)
  }
}

function strangersOf(max: number, maxUnauthenticated: number): number {
  const most = Math.max(1, Math.floor(max / STRANGERS_PART))
  return maxUnauthenticated === 0 ? most : Math.min(maxUnauthenticated, most)
}
