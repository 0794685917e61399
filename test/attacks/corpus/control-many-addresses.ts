// Silent connections to the ports of control plane and webhook, each from another address.

import type { Attack } from '../attack.ts'
import { manyAddresses } from '../wire/addresses.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'hostile review 10, many addresses',
  does: 'opens 500 connections to port 9443 and 500 to the webhook, from as many addresses, and sends nothing',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: async (target, signal) => {
    const localAddress = manyAddresses(target)
    await Promise.all(
      [target.controlPort, target.webhookPort].map((port) =>
        attackConnections(target, signal, { connections: 500, transport: 'tcp', port, localAddress }, () => ({})),
      ),
    )
  },
}
