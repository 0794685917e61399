// Unknown protocols, as many as a ClientHello has room for; and none at all.

import type { Attack } from '../attack.ts'
import { EXTENSIONS, madeClientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'
import { keyShare } from '../wire/tls13.ts'

const NONSENSE = Array.from({ length: 2_500 }, (_, i) => `p${i}`)

export const attack: Attack = {
  reference: 'ALPN nonsense',
  does: 'offers 2,500 protocols that do not exist, one of 255 bytes, an empty one, and none',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) => {
    const name = EXTENSIONS.serverName(target.host)
    const offers = [NONSENSE, ['x'.repeat(255)], [''], [], ['h2', ...NONSENSE]]
    const hellos = offers.map((offer) => madeClientHello([name, EXTENSIONS.alpn(...offer), keyShare()]))
    let n = 0
    return attackConnections(target, signal, { connections: 16, transport: 'tcp' }, (wire) => {
      const hello = [hellos[n++ % hellos.length]]
      // One is accepted; all others are answered by an alert and the end.
      return { next: () => hello.shift(), receive: () => void setTimeout(() => wire.close(), 100) }
    })
  },
}
