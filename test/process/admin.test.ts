// The admin listener over a real socket.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inspect } from 'node:util'
import { type Dispatcher, request } from 'undici'
import type { AdminState } from '../../src/admin/io/server/routes.ts'
import { startAdminServer } from '../../src/admin/io/server/server.ts'
import type { PlainServer } from '../../src/gateway/io/listener/http-plain.ts'
import { createMetrics } from '../../src/gateway/metrics/metrics.ts'
import type { Check } from '../../src/process/api/check.ts'

let live: Check[] = []
let ready: Check[] = []
const state: AdminState = {
  live: () => live,
  ready: () => ready,
  describe: () => ({
    generation: 7,
    clusters: new Map([
      [
        'prod',
        {
          hosts: new Set(['prod.example.com']),
          client: { bearerToken: 'S3CRET-token', key: 'S3CRET-key', cert: 'certificate' },
          serving: { key: '-----BEGIN PRIVATE KEY-----\nS3CRET\n-----END PRIVATE KEY-----' },
        },
      ],
    ]),
    problems: [{ file: 'a.yaml', message: 'cannot use Bearer S3CRET-in-text' }],
  }),
}

let server: PlainServer
before(async () => {
  server = await startAdminServer({ listen: '127.0.0.1:0', state, metrics: createMetrics() })
})
after(() => server.stop())

async function get(
  path: string,
  method: Dispatcher.HttpMethod = 'GET',
): Promise<{ code: number; type: string; text: string }> {
  const response = await request(`http://127.0.0.1:${server.port}${path}`, { method })
  return { code: response.statusCode, type: String(response.headers['content-type']), text: await response.body.text() }
}

test('healthy: ok, and the list when asked', async () => {
  live = [{ name: 'event-loop', ok: true, message: '' }]
  ready = [{ name: 'config', ok: true, message: '' }]
  for (const path of ['/livez', '/readyz', '/healthz']) {
    const answer = await get(path)
    assert.deepEqual([answer.code, answer.text], [200, 'ok'], path)
  }
  assert.equal((await get('/readyz?verbose')).text, '[+]ping ok\n[+]config ok\nreadyz check passed\n')
  assert.equal((await get('/healthz?verbose=1')).text, '[+]ping ok\n[+]event-loop ok\nhealthz check passed\n')
})

test('not ready: the reasons are listed in any case; alive all the same', async () => {
  ready = [
    { name: 'config', ok: true, message: '' },
    { name: 'endpoints', ok: false, message: 'cluster prod: first health checks are not in' },
  ]
  const answer = await get('/readyz')
  assert.equal(answer.code, 500)
  assert.equal(
    answer.text,
    '[+]ping ok\n[+]config ok\n[-]endpoints failed: cluster prod: first health checks are not in\nreadyz check failed\n',
  )
  assert.equal((await get('/livez')).code, 200)
})

test('checks can be excluded', async () => {
  ready = [{ name: 'endpoints', ok: false, message: 'none' }]
  const answer = await get('/readyz?verbose&exclude=endpoints&exclude=nothing')
  assert.equal(answer.code, 200)
  assert.equal(
    answer.text,
    '[+]ping ok\n[+]endpoints excluded: ok\n' +
      'warn: some health checks cannot be excluded: no matches for "nothing"\nreadyz check passed\n',
  )
})

test('metrics', async () => {
  const answer = await get('/metrics')
  assert.equal(answer.code, 200)
  assert.equal(answer.type, 'text/plain; version=0.0.4; charset=utf-8')
  assert.match(answer.text, /^portcullis_process_cpu_seconds_total /m)
})

test('the configuration without its secrets', async () => {
  const answer = await get('/debug/config')
  assert.equal(answer.code, 200)
  assert.equal(answer.type, 'application/json')
  assert.doesNotMatch(answer.text, /S3CRET/)
  const dump = JSON.parse(answer.text)
  assert.equal(dump.generation, 7)
  assert.deepEqual(dump.clusters.prod.hosts, ['prod.example.com'])
  assert.equal(dump.clusters.prod.client.cert, 'certificate')
  assert.equal(dump.clusters.prod.client.key, '[redacted]')
})

test('unknown paths name the known ones; only GET', async () => {
  for (const path of ['/', '/debug', '/debug/pprof', '/livez/', '/METRICS', '//metrics', '/%6detrics']) {
    const answer = await get(path)
    assert.equal(answer.code, 404, path)
    assert.match(answer.text, /\/livez \/readyz \/healthz \/metrics \/debug\/config/)
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'HEAD'] as const)
    assert.equal((await get('/metrics', method)).code, 405)
})

test('a port in use is one clear line', async () => {
  const listen = `127.0.0.1:${server.port}`
  await assert.rejects(startAdminServer({ listen, state, metrics: createMetrics() }), {
    message: `cannot listen on ${listen} for the admin server: listen EADDRINUSE: address already in use ${listen}`,
  })
  await assert.rejects(startAdminServer({ listen: '9090', state, metrics: createMetrics() }), {
    message: 'admin listen address "9090" has no port',
  })
})

test('a failure inside is a 500 without details, and a line in the log with them', async () => {
  const broken = { ...state, describe: () => assert.fail('S3CRET') }
  const logged: unknown[] = []
  const log = { error: (...line: unknown[]) => void logged.push(line) }
  const other = await startAdminServer({ listen: '127.0.0.1:0', state: broken, metrics: createMetrics(), log })
  const response = await request(`http://127.0.0.1:${other.port}/debug/config`)
  assert.equal(response.statusCode, 500)
  assert.equal(await response.body.text(), 'internal error\n')
  assert.match(inspect(logged), /an answer of the admin listener failed.*\/debug\/config.*S3CRET/s)
  await other.stop()
})
