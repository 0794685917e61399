// A failover of Redis, as real Sentinels do it, under load of three replicas: no request waits or fails, each replica keeps to its part
// meanwhile, and what all let in together stays within the rule of docs/shared-limits.md.

import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import type { LimitReplica } from '../../harness/gateways/limit-replica.ts'
import { assertMoved, assertWithinTheRule, failOver, QPS, underLoad } from '../../harness/redis/failover.ts'
import { allKeepToTheirPart, allShare, untilAdmitted } from '../../harness/redis/limit-replicas.ts'
import { startSentinels } from '../../harness/redis/topology.ts'
import { waitFor } from '../../harness/wait.ts'

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const stopAfterwards = (one: LimitReplica): void => void cleanups.push(one.stop)

describe('Sentinels', { concurrency: false }, () => {
  test('the master is killed', async () => {
    const redis = await startSentinels()
    cleanups.push(redis.stop)
    const replicas = await underLoad(redis.url, stopAfterwards)
    const master = await redis.master()
    await assertWithinTheRule(replicas, () => failOver(replicas, () => master.kill()))
    assertMoved(replicas, master)
  })

  test('the master hangs with its connections open, and is back as a replica (long)', async () => {
    const redis = await startSentinels()
    cleanups.push(redis.stop)
    const replicas = await underLoad(redis.url, stopAfterwards)
    const master = await redis.master()
    await assertWithinTheRule(replicas, () => failOver(replicas, async () => master.freeze()))
    assertMoved(replicas, master)
    master.go()
    await waitFor('it to follow the new master', async () => (await master.cli('role')).startsWith('slave'))
    await untilAdmitted(QPS, replicas)
    await allShare(replicas)
  })

  test('one Sentinel is gone, and an operator moves the master (long)', async () => {
    const redis = await startSentinels()
    cleanups.push(redis.stop)
    await redis.sentinels[0]?.kill()
    const replicas = await underLoad(redis.url, stopAfterwards)
    const [first] = redis.servers
    assert.ok(first)
    await assertWithinTheRule(replicas, async () => {
      const failover = async (): Promise<boolean> =>
        (await redis.sentinels[1]?.cli('sentinel', 'failover', 'limits')) === 'OK'
      await waitFor('the failover to begin', failover)
      await waitFor('all to have moved', () =>
        replicas.every((one) => !['', `127.0.0.1:${first.port}`].includes(one.limits.status().node)),
      )
      await allShare(replicas)
      await untilAdmitted(QPS, replicas)
    })
  })

  test('a master without replicas that takes no writes is as good as none (long)', async () => {
    const redis = await startSentinels()
    cleanups.push(redis.stop)
    const replicas = await underLoad(redis.url, stopAfterwards)
    const master = await redis.master()
    await assertWithinTheRule(replicas, async () => {
      await master.cli('config', 'set', 'min-replicas-to-write', '3')
      await allKeepToTheirPart(replicas)
      for (const one of replicas) {
        assert.ok(
          one.logged.some(({ error }) => /^NOREPLICAS/.test(String(error))),
          JSON.stringify(one.logged),
        )
      }
      await master.cli('config', 'set', 'min-replicas-to-write', '0')
      await allShare(replicas)
    })
  })
})
