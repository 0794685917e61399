// The first message of a handshake: as Node sends it, or made by hand with any extensions (RFC 8446 section 4.1.2).

import { randomBytes } from 'node:crypto'
import { Duplex } from 'node:stream'
import { connect } from 'node:tls'

export function clientHello(serverName: string): Promise<Buffer> {
  return new Promise((resolve) => {
    const wire = new Duplex({
      read: () => undefined,
      write(bytes: Buffer, _encoding, done) {
        done()
        resolve(Buffer.from(bytes))
        setImmediate(() => socket.destroy())
      },
    })
    const socket = connect({ socket: wire, servername: serverName, ALPNProtocols: ['h2'], rejectUnauthorized: false })
    socket.on('error', () => undefined)
  })
}

/** With its type and length in front. */
export type Extension = Buffer

/** Octets behind their number, which has `size` octets itself. */
export function vector(size: 1 | 2 | 3, bytes: Buffer): Buffer {
  const length = Buffer.alloc(size)
  length.writeUIntBE(bytes.length, 0, size)
  return Buffer.concat([length, bytes])
}

export function extension(type: number, body: Buffer): Extension {
  return Buffer.concat([Buffer.from([type >> 8, type & 255]), vector(2, body)])
}

export const EXTENSIONS: {
  serverName(name: string): Extension
  alpn(...protocols: readonly string[]): Extension
  /** x25519. */
  keyShare(share: Buffer): Extension
  /** The sessions to resume: identities and binders that were never issued. */
  preSharedKeys(count: number, bytes: number): Extension
  sessionTicket(ticket: Buffer): Extension
} = {
  serverName: (name) => extension(0, vector(2, Buffer.concat([Buffer.from([0]), vector(2, Buffer.from(name))]))),
  alpn: (...protocols) => extension(16, vector(2, Buffer.concat(protocols.map((one) => vector(1, Buffer.from(one)))))),
  keyShare: (share) => extension(51, vector(2, Buffer.concat([Buffer.from([0, 29]), vector(2, share)]))),
  preSharedKeys(count, bytes) {
    const identities = Array.from({ length: count }, () => [vector(2, randomBytes(bytes)), randomBytes(4)]).flat()
    const binders = Array.from({ length: count }, () => vector(1, randomBytes(32)))
    return extension(41, Buffer.concat([vector(2, Buffer.concat(identities)), vector(2, Buffer.concat(binders))]))
  },
  sessionTicket: (ticket) => extension(35, ticket),
}

/** What every one of them has: x25519, signatures of ECDSA and RSA, TLS 1.3 only. */
const NEEDED: readonly Extension[] = [
  extension(10, Buffer.from([0, 2, 0, 29])),
  extension(13, vector(2, Buffer.from([4, 3, 8, 4, 4, 1, 5, 3, 8, 5, 5, 1]))),
  extension(43, Buffer.from([2, 3, 4])),
]
/** Resumption with a key exchange. */
const PSK_MODES = extension(45, Buffer.from([1, 1]))

/** In records of at most 16 KiB. A key share is the caller's. */
export function madeClientHello(extensions: readonly Extension[], perRecord: number = 16_384): Buffer {
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    randomBytes(32),
    vector(1, randomBytes(32)),
    // TLS_AES_128_GCM_SHA256
    vector(2, Buffer.from([0x13, 0x01])),
    vector(1, Buffer.from([0])),
    vector(2, Buffer.concat([...NEEDED, PSK_MODES, ...extensions])),
  ])
  const message = Buffer.concat([Buffer.from([1]), vector(3, body)])
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += perRecord) {
    records.push(record(22, message.subarray(at, at + perRecord)))
  }
  return Buffer.concat(records)
}

export function record(type: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type, 3, 3]), vector(2, content)])
}
