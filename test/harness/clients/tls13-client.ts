// A client of TLS 1.3 that can send records which no library sends.

import { connect, type Socket } from 'node:net'
import { APPLICATION_DATA, HostileTls13 } from '../../attacks/wire/tls13.ts'
import { waitFor } from '../wait.ts'

const UPDATES = 500

export interface Tls13Client {
  readonly socket: Socket
  /** In records of so many bytes. Default: one. */
  send(bytes: Buffer, perRecord?: number): void
  /** So many KeyUpdate messages that ask for one in return. */
  updateKeys(count: number): void
  closed(): boolean
}

/** Resolves when its handshake is complete; rejects when the other side ends it before. The caller destroys the socket. */
export async function openTls13(
  port: number,
  serverName: string,
  localAddress: string,
  protocol: 'h2' | 'http/1.1' = 'h2',
): Promise<Tls13Client> {
  const tls = new HostileTls13(serverName, protocol)
  const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
  let closed = false
  socket.on('error', () => undefined)
  socket.on('close', () => {
    closed = true
  })
  socket.write(tls.hello)
  await new Promise<void>((resolve, reject) => {
    socket.on('close', () => reject(new Error('the handshake was not completed')))
    socket.on('data', (bytes: Buffer) => {
      const answer = tls.receive(bytes)
      if (answer === undefined) return
      socket.write(answer)
      resolve()
    })
  })
  return {
    socket,
    send(bytes, perRecord = bytes.length) {
      const records: Buffer[] = []
      for (let at = 0; at < bytes.length; at += perRecord) {
        records.push(tls.protect(APPLICATION_DATA, bytes.subarray(at, at + perRecord)))
      }
      socket.write(Buffer.concat(records))
    },
    updateKeys: (count) => socket.write(Buffer.concat(Array.from({ length: count }, () => tls.keyUpdate(true)))),
    closed: () => closed,
  }
}

const ALERT_RECORD = [21, 3, 3, 0, 2]
const FATAL = 2

/** Begins a handshake and ends it by an alert (RFC 8446 section 6) as soon as the server has answered. Resolves when the connection is closed. */
export async function endHandshake(
  port: number,
  serverName: string,
  localAddress: string,
  description: number,
): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
  socket.on('error', () => undefined)
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  socket.write(new HostileTls13(serverName, 'h2').hello)
  // Before its keys are in use, an alert in the clear is what it is.
  socket.once('data', () => socket.write(Buffer.from([...ALERT_RECORD, FATAL, description])))
  socket.resume()
  await closed
}

/** KeyUpdate messages until the other side has closed the connection. */
export async function floodWithKeyUpdates(client: Tls13Client): Promise<void> {
  await waitFor('the end of the connection', () => {
    if (client.closed()) return true
    client.updateKeys(UPDATES)
    return false
  })
}
