// Names of servers that are missing, empty, twice, of no letters, and as long as a ClientHello has room for.

import type { Attack } from '../attack.ts'
import { EXTENSIONS, madeClientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'
import { keyShare } from '../wire/tls13.ts'

export const attack: Attack = {
  reference: 'missing and huge SNI',
  does: 'sends no server name, an empty one, one of 15,000 bytes, and one with zeros in it',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) => {
    const { serverName, alpn } = EXTENSIONS
    const names = [
      '',
      'x'.repeat(255),
      'x'.repeat(256),
      'x'.repeat(15_000),
      `${target.host}\0.example.com`,
      '..',
      '\xff',
    ]
    const made = [[], ...names.map((name) => [serverName(name)]), [serverName(target.host), serverName(target.host)]]
    const hellos = made.map((name) => madeClientHello([...name, alpn('h2'), keyShare()]))
    let n = 0
    return attackConnections(target, signal, { connections: 16, transport: 'tcp' }, (wire) => {
      const hello = [hellos[n++ % hellos.length]]
      return { next: () => hello.shift(), receive: () => void setTimeout(() => wire.close(), 100) }
    })
  },
}
