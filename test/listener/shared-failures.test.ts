// Failures of an address, shared by two replicas over a real Redis; without it each counts for itself.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { createRedisLimits, type RedisLimits } from '../../src/gateway/io/redis/limits.ts'
import { SILENT } from '../../src/kit/api/ports.ts'
import { AddressFailures, type Block, QUIET_MS } from '../../src/process/failures/address-failures.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { startRedis, type TestRedis } from '../harness/redis/redis.ts'
import { startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const FREE = 10
/** The next block after so many is 64 s long: longer than a test on a busy machine. */
const BLOCKS = 6
const NEXT_MS = 64_000

interface Replica {
  readonly failures: AddressFailures
  readonly redis: RedisLimits
  readonly blocks: readonly Block[]
}

const cleanups: (() => unknown)[] = []
let server: TestRedis
let one: Replica
let other: Replica

beforeEach(async () => {
  server = await startRedis()
  cleanups.push(server.stop)
  one = await startReplica()
  other = await startReplica()
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function startReplica(): Promise<Replica> {
  const redis = createRedisLimits({ url: server.url, password: '', ca: '' }, Math.random, SILENT)
  cleanups.push(() => redis.close())
  const failures = new AddressFailures({
    free: FREE,
    longestBlockMs: 300_000,
    shared: (name, points, durationSeconds) => redis.counter(name, points, durationSeconds),
    nowMs: () => performance.now(),
  })
  const blocks: Block[] = []
  failures.onBlocked((some) => blocks.push(...some))
  await waitFor('Redis', () => redis.ready)
  return { failures, redis, blocks }
}

/** As if the address had been blocked often, and were not now. */
async function blockedBefore(source: string): Promise<void> {
  await one.redis
    .counter('blocks', Number.MAX_SAFE_INTEGER, QUIET_MS / 1000)()
    .set(source, BLOCKS, QUIET_MS / 1000)
}

test('both count together: what is free at one is free at both, once', async () => {
  for (let i = 0; i < FREE / 2; i++) {
    await one.failures.failed('a')
    await other.failures.failed('a')
  }
  assert.deepEqual([one.blocks, other.blocks], [[], []])
  await other.failures.failed('a')
  assert.deepEqual(other.blocks, [{ source: 'a', forMs: 1_000 }])
  for (let i = 0; i < FREE; i++) await one.failures.failed('b')
  assert.equal(one.failures.blockedMs('b'), 0)
})

test('an address that one has blocked the other blocks with the first failure, for what is left, and no longer', async () => {
  await blockedBefore('a')
  await one.failures.failed('a')
  assert.deepEqual(one.blocks, [{ source: 'a', forMs: NEXT_MS }])
  await Promise.all(Array.from({ length: 5 }, () => other.failures.failed('a')))
  assert.equal(other.blocks.length, 1)
  const { forMs = 0 } = other.blocks[0] ?? {}
  assert.ok(forMs > 0 && forMs <= NEXT_MS, `${forMs}`)
  assert.ok(other.failures.blockedMs('a') > 0)
  assert.equal(other.failures.blockedMs('b'), 0)
})

test('while Redis is away each counts for itself, and what is blocked stays so', async () => {
  await blockedBefore('a')
  await one.failures.failed('a')
  await server.kill()
  for (const { redis } of [one, other]) await waitFor('it to be noticed', () => !redis.ready)
  assert.ok(one.failures.blockedMs('a') > 0)
  await one.failures.failed('b', FREE)
  assert.equal(one.failures.blockedMs('b'), 0)
  await one.failures.failed('b')
  assert.deepEqual(one.blocks.at(-1), { source: 'b', forMs: 1_000 })
  await other.failures.failed('b')
  assert.deepEqual(other.blocks, [])
  await server.restart()
  for (const { redis } of [one, other]) await waitFor('Redis again', () => redis.ready)
  await one.failures.failed('c', FREE)
  await other.failures.failed('c')
  assert.deepEqual(other.blocks.at(-1), { source: 'c', forMs: 1_000 })
})

test('two gateways with a Redis: who has guessed at one is refused at the other before it has counted as many', async () => {
  const stub = await startStub()
  cleanups.push(() => stub.stop())
  const free = 40
  const settings = { redisUrl: server.url, expectedReplicas: 2, maxAuthenticationFailures: free }
  const [first, second] = await Promise.all([
    startInProcess([clusterObject([stub])], settings),
    startInProcess([clusterObject([stub])], settings),
  ])
  cleanups.push(
    () => first.stop(),
    () => second.stop(),
  )
  let guesses = 0
  const guessAt = async ({ port }: InProcessGateway, localAddress: string): Promise<number> => {
    const session = h2Connect({ port, serverName: 'prod.example.com', localAddress })
    const head = [':path', '/api/v1/pods', 'authorization', `Bearer guess-${guesses++}`]
    const { status } = await h2Request(session, head).finally(() => session.destroy())
    return status
  }
  await waitFor('the first to refuse it', async () => (await guessAt(first, '127.0.0.7')) === 429)
  assert.ok(guesses > free)
  let there = 0
  await waitFor('the second to refuse it', async () => {
    there++
    return (await guessAt(second, '127.0.0.7')) === 429
  })
  assert.ok(there <= free, `${there} guesses`)
  assert.equal(await guessAt(second, '127.0.0.8'), 401)
})
