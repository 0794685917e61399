// The first message of a handshake, as Node sends it.

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
