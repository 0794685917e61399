// Metrics, as fast as they are written.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'metrics polled',
  does: 'asks for metrics on 16 connections',
  who: ['unknown'],
  answers: ['200', '401', '403', '503'],
  run: (target, signal) =>
    attackHttp1(target, signal, { port: target.adminPort, transport: 'tcp', connections: 16 }, (wire) => {
      let asked = false
      return {
        next() {
          if (asked) return undefined
          asked = true
          return head1(target, 'GET /metrics')
        },
        answered() {
          asked = false
          wire.more()
        },
      }
    }),
}
