// Which user a tap is counted for: only other replicas may ask on behalf of another user.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TOKEN_FILE_USER } from '../../src/admin/app/access/admin-access.ts'
import type { AdminUser } from '../../src/admin/io/server/route.ts'
import type { PlainRequest } from '../../src/gateway/io/listener/http-plain.ts'
import { MetricsRecorder } from '../../src/gateway/metrics/recorder.ts'
import { type TapDeps, tapRoute } from '../../src/insight/app/tap/tap-route.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'

function request(onBehalfOf: string): PlainRequest {
  return {
    method: 'GET',
    path: '/api/v1/tap',
    query: new URLSearchParams({ onBehalfOf }),
    authorization: '',
    remoteAddress: '127.0.0.1',
    header: () => '',
    certificate: undefined,
    signal: new AbortController().signal,
    readBody: () => Promise.resolve(''),
  }
}

/** Codes of six taps that say to be for six users. */
async function sixTaps(user: AdminUser): Promise<number[]> {
  const deps: TapDeps = {
    replica: 'gw-0',
    pool: { subscribe: () => () => undefined },
    clusters: new Map(),
    replicas: { others: () => Promise.resolve([]), credential: () => Promise.reject(new Error('not asked for')) },
    clock: systemClock,
    log: SILENT,
    audit: undefined,
    metrics: new MetricsRecorder(),
  }
  const route = tapRoute(deps)
  const codes: number[] = []
  for (let i = 0; i < 6; i++) codes.push((await route.answer(request(`user-${i}`), user)).code)
  return codes
}

test('a user has four taps, whatever name it is for; a replica asks for many users', async () => {
  assert.deepEqual(await sixTaps({ name: 'viewer', groups: [] }), [200, 200, 200, 200, 429, 429])
  assert.deepEqual(await sixTaps(TOKEN_FILE_USER), [200, 200, 200, 200, 200, 200])
})
