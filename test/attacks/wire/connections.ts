// Connections of an attacker: opened, written to as fast as they take it, and opened again when the gateway ends them.

import { connect as connectTcp, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import type { Target } from '../attack.ts'

/** What is done with one connection. */
export interface Conversation {
  /** The next bytes to send; undefined: none until `more` is called. */
  next?(): Buffer | undefined
  receive?(bytes: Buffer): void
}

export interface Wire {
  readonly socket: Socket
  /** There is something to send again. */
  more(): void
  /** Ends the connection on this side; another one takes its place. */
  close(): void
}

export interface ConnectionOptionsOfAttack {
  /** At once. Default 1. */
  readonly connections?: number
  /** Default: 127.0.0.1. */
  readonly host?: string
  /** The local address of the next connection. Default: the attacker's address. */
  readonly localAddress?: () => string
  /** What the next connection sends in front of TLS. Default: nothing. */
  readonly preamble?: () => Buffer
  /** Default: the port of clients. */
  readonly port?: number
  /** Default 'tls'. */
  readonly transport?: 'tls' | 'tcp'
  readonly alpn?: 'h2' | 'http/1.1'
  /** Default: the attacker's; null: none. */
  readonly certificate?: KeyPair | null
  readonly tls?: ConnectionOptions
  /** SNI of the next connection. Default: the cluster. */
  readonly servername?: () => string
  /** Whether connections resume the TLS session of one before. Default false. */
  readonly keepsSession?: boolean
}

/** Pieces that are written before what has come is read. */
const WRITES_A_TURN = 32
/** An attack that cannot get in does not spin. */
const REFUSED_PAUSE_MS = 5

/** Talks on so many connections until aborted. */
export async function attackConnections(
  target: Target,
  signal: AbortSignal,
  options: ConnectionOptionsOfAttack,
  talk: (wire: Wire) => Conversation,
): Promise<void> {
  let session: Buffer | undefined
  const onSession = (ticket: Buffer): void => {
    session = ticket
  }
  const one = async (): Promise<void> => {
    while (!signal.aborted) {
      target.answers.connections++
      const resumed = session === undefined ? options : { ...options, tls: { ...options.tls, session } }
      const socket = await open(target, signal, resumed)
      if (options.keepsSession === true) socket?.on('session', onSession)
      if (signal.aborted) socket?.destroy()
      else if (socket === undefined) await pause(signal)
      else await converse(target, signal, socket, talk)
      await turn()
    }
  }
  await Promise.all(Array.from({ length: options.connections ?? 1 }, one))
}

/** Resolves with the socket once it is ready to be written to; undefined when the gateway did not let it in. */
function open(target: Target, signal: AbortSignal, options: ConnectionOptionsOfAttack): Promise<Socket | undefined> {
  const address = {
    port: options.port ?? target.port,
    host: options.host ?? '127.0.0.1',
    localAddress: options.localAddress?.() ?? target.address,
    noDelay: true,
  }
  const certificate = options.certificate === undefined ? target.certificate : (options.certificate ?? undefined)
  const below = options.preamble && connectTcp(address)
  below?.on('error', () => undefined)
  below?.write(options.preamble?.() ?? '')
  const socket =
    options.transport === 'tcp'
      ? (below ?? connectTcp(address))
      : connectTls({
          ...(below === undefined ? address : { socket: below }),
          servername: options.servername?.() ?? target.host,
          rejectUnauthorized: false,
          ...(options.alpn !== undefined && { ALPNProtocols: [options.alpn] }),
          ...(certificate !== undefined && { cert: certificate.certPem, key: certificate.keyPem }),
          ...options.tls,
        })
  return new Promise((resolve) => {
    const stop = (): void => void socket.destroy()
    signal.addEventListener('abort', stop, { once: true })
    socket.on('error', () => undefined) // 'close' follows
    const onClose = (): void => {
      signal.removeEventListener('abort', stop)
      if (!signal.aborted) target.answers.count('refused')
      resolve(undefined)
    }
    socket.once('close', onClose)
    socket.once(options.transport === 'tcp' ? 'connect' : 'secureConnect', () => {
      signal.removeEventListener('abort', stop)
      socket.off('close', onClose)
      resolve(socket)
    })
  })
}

/** Resolves when the connection has ended. */
function converse(
  target: Target,
  signal: AbortSignal,
  socket: Socket,
  talk: (wire: Wire) => Conversation,
): Promise<void> {
  const { answers } = target
  answers.accepted++
  return new Promise((resolve) => {
    let isWaiting = false
    let isOurs = false
    const stop = (): void => {
      isOurs = true
      socket.destroy()
    }
    signal.addEventListener('abort', stop, { once: true })
    socket.once('close', () => {
      signal.removeEventListener('abort', stop)
      if (!isOurs) answers.count('closed')
      resolve()
    })
    const resume = (): void => {
      isWaiting = false
      pump()
    }
    const pump = (): void => {
      if (isWaiting) return
      for (let writes = 0; !socket.destroyed && socket.writable; writes++) {
        const bytes = conversation.next?.()
        if (bytes === undefined) return
        answers.sentBytes += bytes.length
        const isFull = !socket.write(bytes)
        if (!isFull && writes < WRITES_A_TURN) continue
        isWaiting = true
        if (isFull) socket.once('drain', resume)
        else setImmediate(resume)
        return
      }
    }
    const conversation = talk({ socket, more: pump, close: stop })
    socket.on('data', (bytes: Buffer) => {
      answers.receivedBytes += bytes.length
      conversation.receive?.(bytes)
    })
    pump()
  })
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, REFUSED_PAUSE_MS)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
