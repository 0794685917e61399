// PROXY headers from a peer that is not a load balancer, at a port for load balancers and at one without.

import type { Attack } from '../attack.ts'
import { fromIpv4 } from '../wire/addresses.ts'
import { clientHello } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'

const LOCALHOST = 0x7f000001

export const attack: Attack = {
  reference: 'forged source addresses',
  does: 'declares to be 127.0.0.1 in a PROXY header, from an address that is not believed',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: async (target, signal) => {
    const bytes = Buffer.concat([fromIpv4(LOCALHOST), await clientHello(target.host)])
    await Promise.all(
      [target.proxied.host, '127.0.0.1'].map((host) =>
        attackConnections(target, signal, { connections: 16, transport: 'tcp', host }, () => {
          const pieces = [bytes]
          return { next: () => pieces.shift() }
        }),
      ),
    )
  },
}
