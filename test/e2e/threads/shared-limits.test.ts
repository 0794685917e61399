// Three gateway processes, one Redis, one limit: what all of them let through together, while Redis is there, while it is not,
// and when it is back. And the same field at a gateway that has no Redis.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { createCA } from '../../../src/pki/io/pki.ts'
import { ClientConnections, type EmbeddedGateway, startEmbedded, UC_PATH } from '../../harness/gateways/embedded.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../../harness/objects/objects.ts'
import { startRedis, type TestRedis } from '../../harness/redis/redis.ts'
import { reply, type StubUpstream, startStub } from '../../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../../harness/wait.ts'

const NAME = 'prod.example.com'
const REPLICAS = 3
const QPS = 60
const BURST = 60
/** docs: no more than burst + qps * (t + 50 ms) in any time t. */
const AHEAD_SECONDS = 0.05
/** Between two requests of one connection: more than the limit in all, even on a slow machine. */
const PAUSE_MS = 40
const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')

let redis: TestRedis
let stub: StubUpstream
let dir: string
const gateways: TestGateway[] = []
const clients: ClientConnections[] = []

function limited(): UpstreamCluster {
  const limit = { qps: QPS, burst: BURST }
  const schema = { name: 'all', strategy: 'globalCount' as const, tokenBucket: limit, globalTokenBucket: limit }
  return clusterObject([stub], {
    clientCA,
    spec: {
      flowControl: { flowControlSchemas: [schema] },
      dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'all' }],
    },
  })
}

/** What one gateway lets through, of one client. */
interface Admitted {
  seconds: number
  admitted: number
  refused: number
  others: number[]
}

/** All clients ask, as fast as they may, for so long. */
async function demand(forMs: number): Promise<Admitted[]> {
  return Promise.all(
    clients.map(async (client) => {
      const result: Admitted = { seconds: 0, admitted: 0, refused: 0, others: [] }
      const startMs = performance.now()
      while (performance.now() - startMs < forMs) {
        for (const { status } of await client.ask()) {
          if (status === 200) result.admitted++
          else if (status === 429) result.refused++
          else result.others.push(status)
        }
        result.seconds = (performance.now() - startMs) / 1000
        await sleep(PAUSE_MS)
      }
      return result
    }),
  )
}

function sum(results: readonly Admitted[]): { admitted: number; seconds: number } {
  return {
    admitted: results.reduce((total, { admitted }) => total + admitted, 0),
    seconds: Math.max(...results.map(({ seconds }) => seconds)),
  }
}

/** Everything was answered, and there was more demand than the limit. */
function assertPressed(results: readonly Admitted[]): void {
  for (const { others, refused } of results) {
    assert.deepEqual(others, [])
    assert.ok(refused > 0, 'too few requests to tell')
  }
}

async function allHave(name: string, value: number): Promise<void> {
  for (const gateway of gateways) {
    await waitFor(`${name} to be ${value}`, async () => (await gateway.metrics()).includes(`\n${name} ${value}\n`))
  }
}

before(async () => {
  dir = mkdtempSync(join(tmpdir(), 'portcullis-shared-'))
  redis = await startRedis()
  stub = await startStub()
  stub.answer = (request) => {
    stub.seen.length = 0
    reply(request, 200, '{}')
  }
  const starting = Array.from({ length: REPLICAS }, (_, i) =>
    startGateway({
      clusters: [limited()],
      args: [
        `--redis-url=${redis.url}`,
        `--replica-name=r${i}`,
        `--expected-replicas=${REPLICAS}`,
        '--access-log=false',
      ],
    }),
  )
  for (const gateway of await Promise.all(starting)) {
    gateways.push(gateway)
    clients.push(new ClientConnections(() => gateway, NAME, alice))
  }
  await allHave('portcullis_global_limit_replicas', REPLICAS)
})
after(async () => {
  for (const client of clients) client.close()
  await Promise.all(gateways.map((gateway) => gateway.stop()))
  await redis?.stop()
  await stub?.stop()
  rmSync(dir, { recursive: true, force: true })
})

describe('one limit of three gateways', { concurrency: false }, () => {
  test('with Redis: one limit for all, whichever client asks', async () => {
    const results = await demand(5_000)
    assertPressed(results)
    const { admitted, seconds } = sum(results)
    const most = BURST + QPS * (seconds + AHEAD_SECONDS)
    assert.ok(admitted <= most, `${admitted} admitted in ${seconds} s, at most ${most}`)
    assert.ok(admitted >= QPS * seconds * 0.8, `only ${admitted} admitted in ${seconds} s`)
  })

  test('Redis killed: each serves on, with its part', async () => {
    await redis.kill()
    await allHave('portcullis_global_limit_redis_up', 0)
    const results = await demand(4_000)
    assertPressed(results)
    for (const { admitted, seconds } of results) {
      const most = (BURST + QPS * (seconds + AHEAD_SECONDS)) / REPLICAS + 1
      assert.ok(admitted <= most, `${admitted} admitted in ${seconds} s, at most ${most}`)
      assert.ok(admitted >= (QPS * seconds * 0.8) / REPLICAS, `only ${admitted} admitted in ${seconds} s`)
    }
  })

  test('Redis back: shared again, and never more in between', async () => {
    const running = demand(7_000)
    await redis.restart()
    const results = await running
    await allHave('portcullis_global_limit_redis_up', 1)
    await allHave('portcullis_global_limit_replicas', REPLICAS)
    assertPressed(results)
    const { admitted, seconds } = sum(results)
    const most = BURST + QPS * (seconds + AHEAD_SECONDS)
    assert.ok(admitted <= most, `${admitted} admitted in ${seconds} s, at most ${most}`)
    assert.ok(admitted >= QPS * seconds * 0.7, `only ${admitted} admitted in ${seconds} s`)
    await waitFor('the limit to be shared', async () => {
      const texts = await Promise.all(gateways.map((gateway) => gateway.metrics()))
      return texts.every((text) => text.includes(`portcullis_global_limit_state{cluster="${NAME}",schema="all"} 1\n`))
    })
  })
})

describe('a gateway without Redis', { concurrency: false }, () => {
  const MESSAGE = /needs Redis.* in force is tokenBucket, in every replica; start the gateway with --redis-url/

  test('files: the local limit is in force, and it is said which flag is missing', async (t) => {
    const gateway = await startGateway({ clusters: [limited()] })
    const client = new ClientConnections(() => gateway, NAME, alice)
    t.after(async () => {
      client.close()
      await gateway.stop()
    })
    await client.everywhereStatus(200)
    const { problems } = JSON.parse((await gateway.admin('/debug/config')).text)
    assert.match(`${problems[0].message}; ${problems[0].fix}`, MESSAGE)
    assert.equal(problems[0].severity, 'warning')
    assert.equal(problems[0].path, 'spec.flowControl.flowControlSchemas[0].globalTokenBucket')
    assert.match(gateway.logs(), /--redis-url/)
  })

  test('the embedded API server: accepted with a warning', async (t) => {
    const embedded: EmbeddedGateway = await startEmbedded()
    t.after(() => embedded.stop())
    const { code, headers } = await embedded.admin.post(UC_PATH, limited())
    assert.equal(code, 201)
    assert.match(String(headers['warning']), MESSAGE)
  })
})
