// Taps that are opened again and again.

import type { Attack } from '../attack.ts'
import { attackHttp1, head1 } from '../wire/http1.ts'

export const attack: Attack = {
  reference: 'taps',
  does: 'opens taps on 64 connections, and does not read them',
  who: ['unknown'],
  answers: ['200', '400', '401', '403', '404', '503'],
  run: (target, signal) =>
    attackHttp1(target, signal, { port: target.adminPort, transport: 'tcp', connections: 64 }, () => {
      const pieces = [head1(target, 'GET /api/v1/tap?rps=1000')]
      return { next: () => pieces.shift() }
    }),
}
