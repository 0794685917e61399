// Tokens that do not exist from ever new addresses, none of which is ever blocked: reviews and what is kept for each address are bounded.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { manyAddresses } from '../wire/addresses.ts'
import { attackHttp2, head, SMALL_PATH } from '../wire/http2.ts'

const GUESSES = 20

export const attack: Attack = {
  reference: 'token guessing, 401 storm',
  does: 'guesses tokens on 32 connections, each from another address',
  who: ['unknown'],
  answers: ['401', '503', 'RST_STREAM REFUSED_STREAM'],
  must: ['401', '429', '503'],
  run: (target, signal) => {
    let n = 0
    const options = { connections: 32, localAddress: manyAddresses(target) }
    return attackHttp2(target, signal, options, (connection) => {
      let left = GUESSES
      const guess = (stream: number): Buffer =>
        h2.headersFrames(stream, head(target, 'GET', SMALL_PATH, 'authorization', `Bearer invalid-address-${n++}`))
      return {
        next: () => (connection.begun() ? undefined : connection.batch(GUESSES, guess)),
        ended: () => void (--left === 0 && connection.wire.close()),
      }
    })
  },
}
