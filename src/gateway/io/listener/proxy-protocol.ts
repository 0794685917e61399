// PROXY protocol on a port: accepted from named load balancers, rejected from others. The header is read from the raw socket before TLS begins,
// within a deadline; bytes after it are pushed back to the socket.

import type { Socket } from 'node:net'
import { parseIp } from '../../../kit/api/validation/ip-address.ts'
import type { CompiledCidr } from '../../../kit/core/dial/cidr.ts'
import { inAnyCidr } from '../../../kit/core/dial/cidr.ts'
import { ProxyHeaderReader } from '../../core/proxy-protocol/proxy-header.ts'
import { type ConnectionEnds, declaredEnds, socketEnds } from './connection-ends.ts'

export interface ProxyProtocolOptions {
  /** Sources whose headers are trusted. */
  readonly from: readonly CompiledCidr[]
  /** Other connections are closed, or served as if the port had no PROXY protocol. */
  readonly others: 'refuse' | 'plain'
  /** Timeout of a header, milliseconds. */
  readonly timeoutMs: number
  /** Maximum connections awaiting their header. Default 4096. */
  readonly maxAwaiting?: number
  onOutcome(outcome: ProxyOutcome, address: string, problem: string): void
}

export type ProxyOutcome =
  /** Served with the addresses from the header, or (LOCAL, UNKNOWN) the load balancer's own. */
  | 'declared'
  | 'local'
  /** From another address: served without a header, or closed. */
  | 'plain'
  | 'untrusted'
  /** Closed: header absent, malformed or late; or too many connections waiting for one. */
  | 'invalid'
  | 'timeout'
  | 'overflow'
  /** The load balancer disconnected first, as some do for port checks. */
  | 'ended'

/** Maximum connections per thread awaiting their header; the oldest is evicted. */
const MAX_AWAITING = 4096

/** @param counted whether the connection counts against its address: not a load balancer's own */
type Deliver = (socket: Socket, ends: ConnectionEnds, counted: boolean) => void

export class ProxyProtocol {
  readonly #options: ProxyProtocolOptions
  readonly #deliver: Deliver
  /** Oldest first, with the function that ends the wait. */
  readonly #awaiting = new Map<Socket, (outcome: ProxyOutcome) => void>()

  constructor(options: ProxyProtocolOptions, deliver: Deliver) {
    this.#options = options
    this.#deliver = deliver
  }

  /** Takes a socket from which nothing was read. */
  receive(socket: Socket): void {
    const { from, others, onOutcome } = this.#options
    const sender = socket.remoteAddress ?? ''
    const address = parseIp(sender)
    if (address !== undefined && inAnyCidr(from, address)) {
      this.#await(socket, sender)
      return
    }
    // Without an address it is gone: HAProxy's health checks reset the connection as soon as it is open.
    if (address === undefined) {
      onOutcome('ended', sender, '')
      socket.destroy()
      return
    }
    if (others === 'plain') {
      onOutcome('plain', sender, '')
      this.#deliver(socket, socketEnds(socket), true)
      return
    }
    onOutcome('untrusted', sender, '')
    socket.destroy()
  }

  #await(socket: Socket, sender: string): void {
    const { timeoutMs, maxAwaiting = MAX_AWAITING, onOutcome } = this.#options
    const reader = new ProxyHeaderReader()
    const settle = (): void => {
      clearTimeout(deadline)
      this.#awaiting.delete(socket)
      socket.off('data', onData)
      socket.off('close', onClose)
    }
    const close = (outcome: ProxyOutcome, problem = ''): void => {
      settle()
      socket.destroy()
      onOutcome(outcome, sender, problem)
    }
    const onClose = (): void => close('ended')
    const onData = (chunk: Buffer): void => {
      const header = reader.read(chunk)
      if (header.kind === 'more') return
      if (header.kind === 'invalid') {
        close('invalid', header.problem)
        return
      }
      settle()
      // Nothing is read between here and the TLS server, which takes over the socket in this turn.
      socket.pause()
      if (header.length < chunk.length) socket.unshift(chunk.subarray(header.length))
      onOutcome(header.ends === undefined ? 'local' : 'declared', sender, '')
      if (header.ends === undefined) this.#deliver(socket, socketEnds(socket), false)
      else this.#deliver(socket, declaredEnds(header.ends, socket), true)
    }
    const deadline = setTimeout(() => close('timeout'), timeoutMs)
    this.#awaiting.set(socket, close)
    if (this.#awaiting.size > maxAwaiting) this.#closeOldest()
    socket.on('data', onData)
    socket.on('close', onClose)
    // It may have been accepted without reading.
    socket.resume()
  }

  #closeOldest(): void {
    for (const close of this.#awaiting.values()) {
      close('overflow')
      return
    }
  }
}
