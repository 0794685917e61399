// TLS connections between two sockets of this process.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type TLSSocket, connect as tlsConnect } from 'node:tls'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'

export interface TlsPair {
  readonly client: TLSSocket
  /** The server's socket for the client. */
  readonly accepted: TLSSocket
}

export class TlsPairs {
  readonly #server: Server
  readonly #ca: string
  readonly #sockets: TLSSocket[] = []

  constructor() {
    const ca = createCA({ commonName: 'pairs' })
    const pair = issueCertificate(ca, { commonName: 'localhost', dnsNames: ['localhost'], usage: 'server' })
    this.#ca = ca.certPem
    this.#server = createServer({ cert: pair.certPem, key: pair.keyPem })
    this.#server.listen(0, '127.0.0.1')
  }

  /** One after the other. */
  async open(): Promise<TlsPair> {
    if (!this.#server.listening) await once(this.#server, 'listening')
    const { port } = this.#server.address() as AddressInfo
    const secured = once(this.#server, 'secureConnection')
    const client = tlsConnect({ host: '127.0.0.1', port, servername: 'localhost', ca: this.#ca })
    await once(client, 'secureConnect')
    const [accepted] = (await secured) as [TLSSocket]
    for (const socket of [client, accepted]) socket.on('error', () => undefined)
    this.#sockets.push(client, accepted)
    return { client, accepted }
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }
}
