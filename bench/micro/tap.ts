// What taps cost a request, CPU time: no tap, one tap or sixteen that do not match, one that matches above its rate.
// node bench/micro/tap.ts

import process from 'node:process'
import { createRecord, type RequestRecord } from '../../src/gateway/api/request-record.ts'
import { ThreadTaps } from '../../src/insight/app/observers.ts'
import { EVERYTHING, type TapFilter } from '../../src/insight/core/tap/tap-filter.ts'

const ROUNDS = 500_000
const record: RequestRecord = {
  ...createRecord(),
  cluster: 'prod',
  method: 'GET',
  verb: 'list',
  isResourceRequest: true,
  apiVersion: 'v1',
  resource: 'pods',
  namespace: 'shop',
  user: 'system:serviceaccount:shop:ci-bot',
  groups: ['system:serviceaccounts', 'system:authenticated'],
  userAgent: 'kubectl/v1.36.0 (linux/amd64)',
  remoteAddress: '10.1.2.3',
  code: 200,
  durationMs: 1,
  ttfbMs: 1,
}

function measure(name: string, filters: readonly TapFilter[]): void {
  const taps = new ThreadTaps(0, () => performance.now())
  for (const filter of filters) taps.tap({ filter, maxRps: 1, replica: 'gw-0' }, () => true)
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < 5; run++) {
    const began = process.cpuUsage()
    for (let i = 0; i < ROUNDS; i++) {
      taps.requestIdentified(record)
      taps.responseStarted(record)
      taps.requestEnded(record)
    }
    const { user, system } = process.cpuUsage(began)
    best = Math.min(best, (user + system) / 1000)
  }
  console.log(`${name.padEnd(40)} ${((best / ROUNDS) * 1e6).toFixed(1)} ns a request`)
}

const other: TapFilter = { ...EVERYTHING, users: ['system:serviceaccount:other:*'], verbs: ['list'] }
measure('no tap', [])
measure('one tap, of another user', [other])
measure(
  'sixteen taps, of another user',
  Array.from({ length: 16 }, () => other),
)
measure('one tap that matches, above its rate', [EVERYTHING])
