// KeyUpdate messages of TLS 1.3 (RFC 8446 section 4.6.3), each of which asks for one in return: four derivations of keys each.

import type { Attack } from '../attack.ts'
import { floodTls13 } from '../wire/tls13-flood.ts'

const UPDATES = 200

export const attack: Attack = {
  reference: 'KeyUpdate flood',
  does: 'sends KeyUpdate messages on 4 connections',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) =>
    floodTls13(target, signal, (tls) => Array.from({ length: UPDATES }, () => tls.keyUpdate(true))),
}
