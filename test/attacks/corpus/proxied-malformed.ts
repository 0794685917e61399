// PROXY headers that a load balancer passes on to the gateway as an attacker has made them: wrong lengths, floods of TLVs, no end.

import type { Attack } from '../attack.ts'
import { fromIpv4, proxyHeader } from '../wire/addresses.ts'
import { attackConnections } from '../wire/connections.ts'

const CLIENT = 0xc6336409
/** As many empty TLVs as a header has room for, and one of 65,000 bytes. */
const MANY_TLVS = fromIpv4(CLIENT, Buffer.from('ee0000'.repeat(21_840), 'hex'))
const LARGE_TLV = fromIpv4(CLIENT, Buffer.concat([Buffer.from([0xee, 0xfd, 0xe8]), Buffer.alloc(65_000)]))
/** TLVs of a checksum, which does not fit. */
const CHECKSUMS = fromIpv4(CLIENT, Buffer.from('03000400000000'.repeat(9_000), 'hex'))

const HEADERS: readonly Buffer[] = [
  MANY_TLVS,
  LARGE_TLV,
  CHECKSUMS,
  // Shorter than its addresses, with a TLV beyond its end, of an unknown family, command and version.
  proxyHeader(Buffer.alloc(11)),
  fromIpv4(CLIENT, Buffer.from([0xee, 0xff, 0xff])),
  proxyHeader(Buffer.alloc(12), { family: 0x44 }),
  proxyHeader(Buffer.alloc(12), { verCmd: 0x2f }),
  proxyHeader(Buffer.alloc(12), { verCmd: 0x31 }),
  // It never ends.
  proxyHeader(Buffer.alloc(100), { length: 65_535 }),
  Buffer.from(`PROXY TCP4 ${'1'.repeat(200)}\r\n`),
  Buffer.from('PROXY TCP4 127.0.0.1 127.0.0.1 99999 -1\r\n'),
]
const GARBAGE = Buffer.alloc(100)

export const attack: Attack = {
  reference: 'malformed PROXY headers',
  does: 'sends PROXY headers of 64 KiB of TLVs, and wrong ones, from an address that is believed',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) => {
    let n = 0
    const { host, balancer: localAddress } = target.proxied
    const options = { connections: 16, transport: 'tcp', host, localAddress: () => localAddress } as const
    return attackConnections(target, signal, options, () => {
      const header = HEADERS[n++ % HEADERS.length] ?? GARBAGE
      const pieces = [header, GARBAGE]
      return { next: () => pieces.shift() }
    })
  },
}
