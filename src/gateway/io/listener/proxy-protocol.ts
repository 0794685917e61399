// PROXY protocol on a port: believed from load balancers that are named, refused from others. The header is read from the raw socket before
// TLS begins, within a deadline; what comes behind it is given back to the socket.

import type { Socket } from 'node:net'
import { parseIp } from '../../../kit/api/validation/ip-address.ts'
import type { CompiledCidr } from '../../../kit/core/dial/cidr.ts'
import { inAnyCidr } from '../../../kit/core/dial/cidr.ts'
import { ProxyHeaderReader } from '../../core/proxy-protocol/proxy-header.ts'
import { type ConnectionEnds, declaredEnds, socketEnds } from './connection-ends.ts'

export interface ProxyProtocolOptions {
  /** Whose headers are believed. */
  readonly from: readonly CompiledCidr[]
  /** What becomes of other connections: closed, or served as if the port had no PROXY protocol. */
  readonly others: 'refuse' | 'plain'
  /** How long a header may take, milliseconds. */
  readonly timeoutMs: number
  /** Connections whose header has not come. Default 4096. */
  readonly maxAwaiting?: number
  onOutcome(outcome: ProxyOutcome, address: string, problem: string): void
}

export type ProxyOutcome =
  /** Served with the addresses of the header, or (LOCAL, UNKNOWN) with those of the load balancer itself. */
  | 'declared'
  | 'local'
  /** From another address: served without a header, or closed. */
  | 'plain'
  | 'untrusted'
  /** Closed: no header, or a malformed one; none in time; too many that wait for one. */
  | 'invalid'
  | 'timeout'
  | 'overflow'
  /** The load balancer went away before; what some do to see whether the port is open. */
  | 'ended'

/** Connections of a thread whose header has not come; the oldest gives way. */
const MAX_AWAITING = 4096

/** @param counted whether the connection counts as one of its address: not those of a load balancer itself */
export type Deliver = (socket: Socket, ends: ConnectionEnds, counted: boolean) => void

export class ProxyProtocol {
  readonly #options: ProxyProtocolOptions
  readonly #deliver: Deliver
  /** The oldest first; what ends the waiting. */
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
      // Nothing is read between here and the TLS server, which takes the socket over in this turn.
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
