// Clients of a load balancer with ever new addresses of one IPv6 network of 64 bits, who guess tokens: they are one source.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { fromIpv6 } from '../wire/addresses.ts'
import { attackHttp2, head, SMALL_PATH } from '../wire/http2.ts'

const GUESSES = 20

export const attack: Attack = {
  reference: 'rotation of addresses in an IPv6 /64',
  does: 'guesses tokens on 32 connections, each from another address of one /64',
  who: ['unknown'],
  answers: ['401', '503', 'RST_STREAM REFUSED_STREAM'],
  must: ['401', '429', '503'],
  run: (target, signal) => {
    let n = 0
    const { host, balancer } = target.proxied
    const options = { connections: 32, host, localAddress: () => balancer, preamble: () => fromIpv6(n++) }
    return attackHttp2(target, signal, options, (connection) => {
      let left = GUESSES
      const guess = (stream: number): Buffer =>
        h2.headersFrames(stream, head(target, 'GET', SMALL_PATH, 'authorization', `Bearer invalid-network-${n++}`))
      return {
        next: () => (connection.begun() ? undefined : connection.batch(GUESSES, guess)),
        ended: () => void (--left === 0 && connection.wire.close()),
      }
    })
  },
}
