// The dashboard and its data, polled at full speed.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

const PATHS = ['/', '/api/v1/overview', '/api/v1/top', '/debug/config', '/livez', '/readyz']

export const attack: Attack = {
  reference: 'dashboards at full speed',
  does: 'asks for the dashboard and its data on 16 connections',
  who: ['unknown'],
  answers: ['200', '302', '303', '401', '403', '404', '503'],
  run: (target, signal) =>
    attackHttp1(target, signal, { port: target.adminPort, transport: 'tcp', connections: 16 }, (wire) => {
      let asked = false
      let n = 0
      return {
        next() {
          if (asked) return undefined
          asked = true
          return head1(target, `GET ${PATHS[n++ % PATHS.length]}`)
        },
        answered() {
          asked = false
          wire.more()
        },
      }
    }),
}
