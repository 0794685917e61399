// Many addresses for one attacker: of loopback, or as a load balancer declares them.

import type { Target } from '../attack.ts'

/** Another one of 65,000 with each call. */
export function manyAddresses({ network }: Target): () => string {
  let n = 0
  return () => {
    n = (n % 65_000) + 1
    return `127.${network}.${n >> 8}.${n & 255}`
  }
}

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex')
const [PROXY, TCP4, TCP6] = [0x21, 0x11, 0x21]
const PORTS = Buffer.from('9c4001bb', 'hex')

/** A header of PROXY protocol, version 2. @param body addresses and TLVs; what the header says of them is true unless told otherwise */
export function proxyHeader(
  body: Buffer,
  { verCmd = PROXY, family = TCP4, length = body.length }: { verCmd?: number; family?: number; length?: number } = {},
): Buffer {
  return Buffer.concat([SIGNATURE, Buffer.from([verCmd, family, length >> 8, length & 255]), body])
}

/** That the client has this address. @param tlvs behind the addresses */
export function fromIpv4(source: number, tlvs: Buffer = Buffer.alloc(0)): Buffer {
  const client = Buffer.alloc(4)
  client.writeUInt32BE(source)
  return proxyHeader(Buffer.concat([client, Buffer.from([192, 0, 2, 80]), PORTS, tlvs]))
}

/** The same with the address `n` of one IPv6 network of 64 bits. */
export function fromIpv6(n: number): Buffer {
  const client = Buffer.from('20010db800000001'.padEnd(32, '0'), 'hex')
  client.writeUInt32BE(n, 12)
  return proxyHeader(Buffer.concat([client, Buffer.alloc(16, 1), PORTS]), { family: TCP6 })
}
