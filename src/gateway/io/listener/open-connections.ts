// Limits clients' open connections over all ports of a thread: strangers, which have not sent a request with a valid credential yet, and users. Each
// kind has its own places. A newcomer is never refused because of others: the source with the most connections gives one up.

import type { Socket } from 'node:net'
import type { Charge } from '../../../kit/api/stream.ts'
import { Places } from '../../../kit/core/places/places.ts'
import { addressSource } from '../../../kit/core/shares/call-source.ts'
import { addTickable, removeTickable, type Tickable } from '../../../kit/io/world/coarse-ticker.ts'

/** As named in metrics. */
type ConnectionLimit = 'connections' | 'unauthenticated-connections'

export interface OpenConnectionsOptions {
  /** Users and strangers together; 0 = unlimited. */
  readonly max: number
  /** Unauthenticated clients, which these places are reserved for; 0 = unlimited. */
  readonly maxUnauthenticated: number
  /** A connection was evicted, because its source has the most. */
  onGivenUp?(limit: ConnectionLimit, source: string): void
}

/** An evicted user's connection may finish running requests for this long. */
const LEAVE_MS = 30_000
/** Maximum fraction of the places that may be leaving: one in this many. Beyond it, the oldest is closed. */
const LEAVING_PART = 8
/** Strangers never hold more than this fraction of all places: one in this many. */
const STRANGERS_PART = 2

/** An open connection. */
class OpenConnection {
  readonly socket: Socket
  readonly address: string
  /** The address, or since authentication the user. */
  source: string
  known = false
  leavingSinceMs = 0
  /** Asks the client to leave; false: it cannot be asked. */
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
  /** Leaving the longest first. */
  readonly #leaving = new Set<OpenConnection>()

  constructor(options: OpenConnectionsOptions) {
    this.#options = options
    const { max, maxUnauthenticated } = options
    const strangers = max === 0 ? maxUnauthenticated : strangersOf(max, maxUnauthenticated)
    this.#strangers = new Places(strangers, { newestFirst: true })
    // Prefer established users over newcomers; otherwise users above the limit would evict each other forever, each with a handshake.
    this.#users = new Places(max === 0 ? 0 : max - strangers, { newestFirst: true, newcomersLeave: true })
    this.#most = max
  }

  /** Number of strangers' and users' connections, including those that are leaving. */
  counts(): { readonly unauthenticated: number; readonly users: number } {
    return { unauthenticated: this.#strangers.size, users: this.#users.size + this.#leaving.size }
  }

  /** Adds a stranger's connection, until it closes. It may be evicted at once. */
  add(socket: Socket, address: string, source: string): OpenConnection {
    const connection = new OpenConnection(socket, address, source)
    this.#bySocket.set(socket, connection)
    this.#strangers.add(connection, source)
    socket.once('close', () => this.#closed(connection))
    this.#makeRoom()
    return connection
  }

  /** @param socket as passed to `add` */
  of(socket: unknown): OpenConnection | undefined {
    return this.#bySocket.get(socket as Socket)
  }

  /** Whether the connection has requests waiting for the gateway: then it is evicted after idle ones. */
  setBusy(socket: Socket, busy: boolean): void {
    const connection = this.#bySocket.get(socket)
    if (connection !== undefined) this.#strangers.setSpare(connection, !busy)
  }

  /** The first request on it was authenticated. */
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

  /** Lets a user's connection finish what is running, within bounds. */
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

// Counts open connections per address: an IPv4 address, or an IPv6 /64 network.

/** Anything that emits 'close': a socket. */
interface Closable {
  once(event: 'close', listener: () => void): unknown
}

export class SourceConnections {
  readonly #max: number
  /** At most as many entries as connections. */
  readonly #open = new Map<string, number>()

  /** @param max per address; 0 = unlimited */
  constructor(max: number) {
    this.#max = max
  }

  /** Counts a connection until it closes. False: its address is at the limit, and this one is not counted. */
  admit(socket: Closable, address: string): boolean {
    if (this.#max === 0) return true
    const source = addressSource(address)
    const open = this.#open.get(source) ?? 0
    if (open >= this.#max) return false
    this.#open.set(source, open + 1)
    socket.once('close', () => this.#closed(source))
    return true
  }

  #closed(source: string): void {
    const open = (this.#open.get(source) ?? 0) - 1
    if (open > 0) this.#open.set(source, open)
    else this.#open.delete(source)
  }
}

// Bounds the connections of a port for small requests. When it is full, the address with the most connections loses one, the oldest without a request
// if there is any: a client that opens many, and sends nothing or never reads the responses, cannot lock out probes, which take a moment.

interface ConnectionBounds {
  /** Over all addresses; at least 2. */
  readonly total: number
  /** Per IPv4 address, or IPv6 /64 network. */
  readonly perAddress: number
}

interface Entry {
  readonly socket: Socket
  readonly ends: string
  /** Requests in progress. */
  answering: number
}

export class BoundedConnections {
  readonly #perAddress: number
  readonly #places: Places<Entry>
  readonly #open = new Map<string, Entry>()

  constructor({ total, perAddress }: ConnectionBounds) {
    this.#perAddress = perAddress
    // Evict before adding, so that the new connection is never the one evicted.
    this.#places = new Places(total - 1)
  }

  get size(): number {
    return this.#places.size
  }

  /** Closes the socket if its address is at the limit, with a request on every connection. */
  admit(socket: Socket): void {
    const source = addressSource(socket.remoteAddress ?? '')
    if (this.#places.countOf(source) >= this.#perAddress) {
      const idle = this.#places.toGiveUpSpare(source)
      if (idle === undefined) return void socket.destroy()
      this.#close(idle)
    }
    const ends = endsOf(socket)
    // A previous connection with the same ends is dead; its 'close' is still to come.
    for (const gone of [this.#places.toGiveUp(), this.#open.get(ends)]) if (gone !== undefined) this.#close(gone)
    const entry: Entry = { socket, ends, answering: 0 }
    this.#open.set(ends, entry)
    this.#places.add(entry, source)
    socket.once('close', () => this.#forget(entry))
  }

  /** A request has begun on this connection, or (-1) was answered. @param ends from `endsOf` @returns requests in progress */
  answering(ends: string, change: 1 | -1): number {
    const entry = this.#open.get(ends)
    if (entry === undefined) return 0
    entry.answering += change
    this.#places.setSpare(entry, entry.answering === 0)
    return entry.answering
  }

  #close(entry: Entry): void {
    this.#forget(entry)
    entry.socket.destroy()
  }

  #forget(entry: Entry): void {
    this.#places.delete(entry)
    if (this.#open.get(entry.ends) === entry) this.#open.delete(entry.ends)
  }
}

/** The same for a TLS socket and the socket below it. Unknown once closed. */
export function endsOf({ remoteAddress = '', remotePort = 0, localAddress = '' }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress}`
}
