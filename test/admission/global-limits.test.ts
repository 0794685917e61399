// Limits that replicas share, with a real Redis: three replicas of what keeps limits, in one process.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { FlowControlSchema } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { KeptPart } from '../../src/gateway/controllers/limits/global-limits.ts'
import type { ReplicaPart } from '../../src/gateway/core/limits/global-replicas.ts'
import { redisAddress } from '../../src/gateway/io/redis/address.ts'
import { limitName } from '../../src/gateway/io/redis/limits.ts'
import { expositionText } from '../../src/gateway/metrics/exposition.ts'
import { exposeGlobalLimits } from '../../src/gateway/metrics/main-thread-series.ts'
import { createCA, issueCertificate } from '../../src/pki/io/pki.ts'
import {
  type LimitReplica,
  mostInWindow,
  type ReplicaOptions,
  type Running,
  startReplica,
} from '../harness/gateways/limit-replica.ts'
import { PATIENT } from '../harness/patience.ts'
import { type RedisServerOptions, startRedis, type TestRedis } from '../harness/redis/redis.ts'
import { waitFor } from '../harness/wait.ts'

/**
 * Tests at once: each waits most of its time, with a Redis and replicas of its own. What a replica may have admitted says for how long this process
 * stood still.
 */
const AT_ONCE = { concurrency: 4 }

/** What a test has started is stopped in reverse. */
const stops = new WeakMap<TestContext, (() => Promise<void> | void)[]>()

function stopAfter(t: TestContext, stop: () => Promise<void> | void): void {
  const known = stops.get(t)
  if (known !== undefined) return void known.push(stop)
  const all = [stop]
  stops.set(t, all)
  t.after(async () => {
    for (const one of all.reverse()) await one()
  })
}

const QPS = 300

function bucket(qps = QPS, burst = qps): FlowControlSchema {
  const limit = { qps, burst }
  return { name: 'rate', strategy: 'globalCount', tokenBucket: limit, globalTokenBucket: limit }
}

function inFlight(max: number): FlowControlSchema {
  const limit = { max }
  return { name: 'slots', strategy: 'globalAllocate', maxRequestsInflight: limit, globalMaxRequestsInflight: limit }
}

async function setUp(t: TestContext, options: RedisServerOptions = {}): Promise<TestRedis> {
  const redis = await startRedis(options)
  stopAfter(t, redis.stop)
  return redis
}

function replica(t: TestContext, options: ReplicaOptions, ...schemas: readonly FlowControlSchema[]): LimitReplica {
  const started = startReplica(options, ...schemas)
  stopAfter(t, started.stop)
  return started
}

async function three(
  t: TestContext,
  redis: TestRedis,
  ...schemas: readonly FlowControlSchema[]
): Promise<readonly LimitReplica[]> {
  const replicas = [1, 2, 3].map((i) => replica(t, { url: redis.url, expectedReplicas: 3, name: `r${i}` }, ...schemas))
  await waitFor('all replicas to see each other', () => replicas.every((one) => knows(one, 3)))
  return replicas
}

function knows(one: LimitReplica, others: number): boolean {
  const { mode, replicas } = one.limits.status()
  return mode === 'shared' && replicas.length === others
}

function total(replicas: readonly LimitReplica[]): number {
  return replicas.reduce((sum, { admitted }) => sum + admitted.length, 0)
}

/** Waits until requests have come for so long, and says how many milliseconds it was and how many were admitted in them. */
async function during(forMs: number, replicas: readonly LimitReplica[]): Promise<{ ms: number; admitted: number }> {
  const before = total(replicas)
  const startMs = performance.now()
  await waitFor('time to pass', () => performance.now() - startMs >= forMs)
  return { ms: performance.now() - startMs, admitted: total(replicas) - before }
}

/** What a limit may let in, at most, in so many milliseconds: a tenth more, and what came while this process stood still. */
function most(ms: number, replicas: readonly LimitReplica[], qps = QPS): number {
  const stalledMs = Math.max(...replicas.map((one) => one.stalledMs()))
  return (qps * (ms * 1.1 + stalledMs)) / 1000
}

/** Never more than the limit; and at least four fifths of it as soon as the machine that runs tests is quiet enough. */
async function untilFull(forMs: number, replicas: readonly LimitReplica[], qps = QPS): Promise<void> {
  let last = ''
  for (let i = 0; i < 10; i++) {
    const { ms, admitted } = await during(forMs, replicas)
    last = `${admitted} admitted in ${ms} ms`
    assert.ok(admitted <= most(ms, replicas, qps), last)
    if (admitted >= (qps * ms * 0.8) / 1000) return
  }
  assert.fail(`only ${last}`)
}

/** As many as are let in. */
function beginAll(one: LimitReplica, most: number): Running[] {
  const running: Running[] = []
  while (running.length < most) {
    const request = one.begin('slots')
    if (request === undefined) break
    running.push(request)
  }
  return running
}

describe('a token bucket of all replicas', AT_ONCE, () => {
  test('three replicas with twice the demand: the limit, and no more in any second', PATIENT, async (t) => {
    const replicas = await three(t, await setUp(t), bucket())
    for (const one of replicas) one.demand(200)
    // The burst.
    await during(1_500, replicas)
    const from = replicas.map(({ admitted }) => admitted.length)
    await untilFull(3_000, replicas)
    const steady = replicas.flatMap(({ admitted }, i) => admitted.slice(from[i]))
    assert.ok(mostInWindow(steady, 1_000) <= most(1_000, replicas), `${mostInWindow(steady, 1_000)} in a second`)
  })

  test('one replica that has all the requests gets all of the limit', PATIENT, async (t) => {
    const replicas = await three(t, await setUp(t), bucket())
    const [busy] = replicas
    assert.ok(busy)
    busy.demand(2 * QPS)
    await during(2_000, replicas)
    await untilFull(2_000, replicas)
  })

  test('below the limit nothing is refused', PATIENT, async (t) => {
    const replicas = await three(t, await setUp(t), bucket())
    // What a pause of this process may need.
    const filled = (one: LimitReplica): boolean => (one.limits.status().limits[0]?.atHand ?? 0) >= 20
    await waitFor('tokens', () => replicas.every(filled))
    for (const one of replicas) one.demand(QPS / 6)
    await during(2_000, replicas)
    assert.deepEqual(
      replicas.map((one) => one.refused()),
      [0, 0, 0],
    )
    assert.ok(total(replicas) > QPS / 2)
  })

  test('a burst is there after a pause, also for one replica', PATIENT, async (t) => {
    const [one] = await three(t, await setUp(t), bucket(100, 400))
    assert.ok(one)
    // Half of the burst lies with replicas, a part with each; the rest comes within a few looks.
    await waitFor('tokens', () => (one.limits.status().limits[0]?.atHand ?? 0) >= 40)
    let admitted = 0
    const startMs = performance.now()
    await waitFor('a good part of the burst', () => {
      while (one.begin() !== undefined) admitted++
      return admitted > ((performance.now() - startMs) * 100) / 1000 + 60
    })
    const seconds = (performance.now() - startMs) / 1000
    assert.ok(admitted <= 400 + 100 * seconds + 5, `${admitted} in ${seconds} s`)
  })

  test('the part of a replica that is killed goes to the others', PATIENT, async (t) => {
    const replicas = await three(t, await setUp(t), bucket())
    for (const one of replicas) one.demand(QPS)
    const [killed, ...left] = replicas
    await during(1_500, replicas)
    killed?.crash()
    await waitFor('the others to see it', () => left.every((one) => knows(one, 2)))
    await untilFull(2_000, left)
  })

  test('Redis killed: each keeps to its part and says so; Redis back: shared again', PATIENT, async (t) => {
    const redis = await setUp(t)
    const replicas = await three(t, redis, bucket())
    for (const one of replicas) one.demand(200)
    await during(1_500, replicas)
    await redis.kill()
    await waitFor('all to notice', () => replicas.every((one) => one.limits.status().mode === 'parted'))
    await Promise.all(replicas.map((one) => untilFull(2_000, [one], QPS / 3)))
    const [first] = replicas
    assert.ok(first)
    const status = first.limits.status()
    assert.deepEqual(status.limits[0]?.mode, 'parted')
    assert.notEqual(status.message, '')
    const text = await expositionText((into) => exposeGlobalLimits(into, status))
    assert.match(text, /portcullis_global_limit_redis_up 0\n/)
    assert.match(text, /portcullis_global_limit_state\{cluster="prod",schema="rate"\} 0\n/)
    assert.match(text, /portcullis_global_limit_replicas 3\n/)
    const from = replicas.map(({ admitted }) => admitted.length)
    await redis.restart()
    await waitFor('all to be back', () => replicas.every((one) => knows(one, 3)))
    await untilFull(2_000, replicas)
    const since = replicas.flatMap(({ admitted }, i) => admitted.slice(from[i]))
    assert.ok(mostInWindow(since, 1_000) <= most(1_000, replicas), `${mostInWindow(since, 1_000)} in a second`)
    // One line when it goes, one when it comes.
    const levels = first.logged.map(({ level }) => level)
    assert.deepEqual(levels, ['info', 'warn', 'info'])
  })

  test('a Redis that hangs counts as unreachable', PATIENT, async (t) => {
    const redis = await setUp(t)
    const replicas = await three(t, redis, bucket())
    for (const one of replicas) one.demand(200)
    // The burst.
    await during(1_500, replicas)
    redis.freeze()
    await waitFor('all to notice', () => replicas.every((one) => one.limits.status().mode === 'parted'))
    await untilFull(2_000, replicas)
    redis.go()
    await waitFor('all to be back', () => replicas.every((one) => knows(one, 3)))
  })

  test('another limit is in force at once, and refills nothing', PATIENT, async (t) => {
    const redis = await setUp(t)
    const one = replica(t, { url: redis.url }, bucket(100))
    one.demand(500)
    await waitFor('it to be shared', () => knows(one, 1))
    await during(1_500, [one])
    one.apply(bucket(200))
    await during(500, [one])
    await untilFull(2_000, [one], 200)
  })

  test('the local limit also holds', PATIENT, async (t) => {
    const redis = await setUp(t)
    const local = { qps: 50, burst: 50 }
    const one = replica(t, { url: redis.url }, { ...bucket(), tokenBucket: local })
    await waitFor('it to be shared', () => knows(one, 1))
    one.demand(500)
    await during(1_500, [one])
    await untilFull(2_000, [one], 50)
  })
})

describe('requests in flight of all replicas', AT_ONCE, () => {
  test('never more than the limit in all, and one replica can have nearly all', PATIENT, async (t) => {
    const replicas = await three(t, await setUp(t), inFlight(30))
    const [busy, ...others] = replicas
    assert.ok(busy)
    const running: Running[] = []
    await waitFor('one replica to have nearly all', () => {
      running.push(...beginAll(busy, 30))
      return running.length >= 28
    })
    let more = 0
    for (const one of others) more += beginAll(one, 30).length
    assert.ok(running.length + more <= 30, `${running.length} and ${more}`)
    for (const request of running.splice(0)) request.end()
    await waitFor('the others to get theirs', () => {
      for (const one of others) more += beginAll(one, 30).length
      return more >= 28
    })
    assert.ok(more <= 30, `${more}`)
  })

  test('slots of a replica that crashed are free within ten seconds', PATIENT, async (t) => {
    const [one, other] = await three(t, await setUp(t), inFlight(30))
    assert.ok(one && other)
    const held: Running[] = []
    await waitFor('the first to have most', () => {
      held.push(...beginAll(one, 30))
      return held.length >= 25
    })
    const crashedMs = performance.now()
    one.crash()
    let got = 0
    await waitFor('the other to have most', () => {
      got += beginAll(other, 30).length
      return got >= 25
    })
    assert.ok(performance.now() - crashedMs < 10_000 + other.stalledMs())
    assert.ok(got <= 30)
  })

  test('a replica that has all yields to one that has none', PATIENT, async (t) => {
    const [one, other] = await three(t, await setUp(t), inFlight(30))
    assert.ok(one && other)
    const held: Running[] = []
    let theirs = 0
    await waitFor('the first to have nearly all', () => {
      held.push(...beginAll(one, 30))
      return held.length >= 28
    })
    // Requests of the first end one after the other, and it takes another whenever it can.
    await waitFor('the second to have a part', () => {
      held.shift()?.end()
      held.push(...beginAll(one, 30))
      theirs += beginAll(other, 30).length
      assert.ok(held.length + theirs <= 30, `${held.length} and ${theirs}`)
      return theirs >= 8
    })
  })

  test('without Redis each replica has its part, and they add up to the limit', PATIENT, async (t) => {
    const redis = await setUp(t)
    const replicas = await three(t, redis, inFlight(10))
    await redis.kill()
    await waitFor('all to notice', () => replicas.every((one) => one.limits.status().mode === 'parted'))
    const counts = new Map<LimitReplica, number>()
    await waitFor('all to have their part', () => {
      for (const one of replicas) counts.set(one, (counts.get(one) ?? 0) + beginAll(one, 10).length)
      return [...counts.values()].reduce((sum, count) => sum + count) >= 10
    })
    assert.deepEqual([...counts.values()].sort(), [3, 3, 4])
  })
})

describe('Redis', AT_ONCE, () => {
  test('not there at the start: the parts of before, which add up to the limit', PATIENT, async (t) => {
    const redis = await setUp(t)
    const parts: (ReplicaPart | undefined)[] = []
    const kept = (index: number): KeptPart => ({
      restore: () => parts[index],
      keep: (part) => {
        parts[index] = part
      },
      current: () => undefined,
    })
    const started = (index: number): LimitReplica => {
      return replica(t, { url: redis.url, name: `r${index}`, kept: kept(index) }, inFlight(10))
    }
    const before = [0, 1, 2].map(started)
    await waitFor('all replicas to see each other', () => before.every((one) => knows(one, 3)))
    await waitFor('all parts', () => parts.every((part) => part?.replicas === 3))
    for (const one of before) one.crash()
    await redis.kill()
    const after = [0, 1, 2].map(started)
    await waitFor('their parts', () => after.every((one) => one.limits.status().mode === 'parted'))
    const taken = after.map((one) => {
      let count = 0
      while (one.begin() !== undefined) count++
      return count
    })
    assert.deepEqual(
      taken.sort((a, b) => b - a),
      [4, 3, 3],
    )
  })

  test('not there at the start: requests pass by parts, and one line says so', PATIENT, async (t) => {
    const redis = await setUp(t)
    await redis.kill()
    const one = replica(t, { url: redis.url, expectedReplicas: 3 }, bucket())
    one.demand(QPS)
    await waitFor('a line', () => one.logged.length > 0)
    await untilFull(2_000, [one], QPS / 3)
    assert.equal(one.logged.length, 1)
    await redis.restart()
    await waitFor('it to be shared', () => knows(one, 1))
  })

  test('a wrong password is said once, and not in any message', PATIENT, async (t) => {
    const redis = await setUp(t, { password: 'right-one' })
    const bad = replica(t, { url: redis.url, password: 'wrong-one' }, bucket())
    await waitFor('a line', () => bad.logged.some(({ error }) => /WRONGPASS|NOAUTH/.test(String(error))))
    await during(1_500, [bad])
    assert.ok(bad.logged.length <= 2, JSON.stringify(bad.logged))
    assert.doesNotMatch(JSON.stringify([bad.logged, bad.limits.status()]), /wrong-one/)
    const good = replica(t, { url: redis.url, password: 'right-one' }, bucket())
    await waitFor('it to be shared', () => knows(good, 1))
  })

  test('over TLS, of the authority that was named', PATIENT, async (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'portcullis-redis-tls-'))
    stopAfter(t, () => rmSync(dir, { recursive: true, force: true }))
    const ca = createCA({ commonName: 'redis CA' })
    const pair = issueCertificate(ca, { commonName: 'redis', usage: 'server', ipAddresses: ['127.0.0.1'] })
    for (const [file, pem] of [
      ['ca.pem', ca.certPem],
      ['cert.pem', pair.certPem],
      ['key.pem', pair.keyPem],
    ] as const) {
      writeFileSync(join(dir, file), pem)
    }
    const files = ['--tls-cert-file', 'cert.pem', '--tls-key-file', 'key.pem', '--tls-ca-cert-file', 'ca.pem']
    const args = [...files.map((file) => (file.startsWith('--') ? file : join(dir, file))), '--tls-auth-clients', 'no']
    const redis = await setUp(t, { tls: true, args })
    const good = replica(t, { url: redis.url, ca: ca.certPem }, bucket())
    await waitFor('it to be shared', () => knows(good, 1))
    const bad = replica(t, { url: redis.url, ca: createCA({ commonName: 'another' }).certPem }, bucket())
    await waitFor('a line', () => bad.logged.some(({ error }) => /certificate/.test(String(error))))
    assert.equal(bad.limits.status().mode, 'parted')
  })

  test('keeps names of any text and length, each its own, under short keys', PATIENT, async (t) => {
    const redis = await setUp(t)
    const one = replica(t, { url: redis.url }, { ...bucket(), name: 'a b\n*' }, { ...bucket(), name: 'x'.repeat(500) })
    await waitFor('it to be shared', () => knows(one, 1))
    const list = (): string[] =>
      execFileSync('redis-cli', ['-p', String(redis.port), 'keys', '*'])
        .toString()
        .trim()
        .split('\n')
    const keys = await waitFor('the keys', () => (list().length === 3 ? list() : undefined))
    for (const key of keys) assert.match(key, /^portcullis:v1:(replicas|bucket:#[0-9a-f]{64})$/)
    assert.notEqual(limitName('a', 'b c'), limitName('a', 'b  c'))
    assert.equal(limitName('prod', 'all'), 'prod/all')
  })

  test('leaves nothing of a replica that ends', PATIENT, async (t) => {
    const redis = await setUp(t)
    const [one, ...others] = await three(t, redis, bucket(), inFlight(9))
    assert.ok(one)
    await one.stop()
    await waitFor('the others to see it', () => others.every((other) => knows(other, 2)))
  })

  test('an address that is none is refused without its password', PATIENT, () => {
    for (const url of ['', 'localhost:6379', 'http://:secret@host', 'redis://:secret@host/x', 'redis:///1']) {
      assert.throws(
        () => redisAddress(url),
        (error: Error) => !error.message.includes('secret'),
      )
    }
    assert.equal(redisAddress('rediss://user:secret@example.com/3'), 'example.com:6379')
  })
})

test('no more than 1,000 of the replicas that Redis names are read', PATIENT, async (t) => {
  const redis = await setUp(t)
  const one = replica(t, { url: redis.url }, bucket())
  await waitFor('it to be shared', () => knows(one, 1))
  const now = String(Date.now())
  const others = Array.from({ length: 1_500 }, (_, i) => [now, `other-${i}`]).flat()
  execFileSync('redis-cli', ['-p', String(redis.port), 'zadd', 'portcullis:v1:replicas', ...others])
  const { members } = await one.redis.beat('one')
  assert.ok(members.length > 900 && members.length <= 1_000, `${members.length}`)
})
