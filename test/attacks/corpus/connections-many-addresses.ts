// Silent connections, each from another address, so that no bound for an address holds them.

import type { Attack } from '../attack.ts'
import { manyAddresses } from '../wire/addresses.ts'
import { attackConnections } from '../wire/connections.ts'

export const attack: Attack = {
  reference: 'hostile review 10, many addresses',
  does: 'opens 1,000 connections from 1,000 addresses, and sends nothing',
  who: ['unknown'],
  answers: [],
  run: (target, signal) => {
    const options = { connections: 1_000, transport: 'tcp', localAddress: manyAddresses(target) } as const
    return attackConnections(target, signal, options, () => ({}))
  },
}
