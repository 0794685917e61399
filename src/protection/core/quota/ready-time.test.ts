import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readyAtLeastMs, readyAtMostMs } from './ready-time.ts'

const EPOCH = 1_800_000_000_000
const stamp = (ms: number): number => Math.floor(ms / 1000) * 1000

test('how long a pod has truly been ready is within the bounds, whatever the clocks of its node and its API server', () => {
  const span = fc.integer({ min: 0, max: 100_000 })
  const skew = fc.integer({ min: -3_600_000, max: 3_600_000 })
  const facts = fc.record({ pending: span, startUp: span, since: span, later: span, server: skew, kubelet: skew })
  fc.assert(
    fc.property(facts, fc.boolean(), ({ pending, startUp, since, later, server, kubelet }, known) => {
      const [started, ready] = [EPOCH + pending, EPOCH + pending + startUp]
      const now = ready + since
      const pod = {
        createdMs: stamp(EPOCH + server),
        startedMs: known ? stamp(started + kubelet) : 0,
        readySinceMs: stamp(ready + kubelet),
        // The kubelet may have written something else since then.
        readyWrittenMs: stamp(ready + Math.min(later, since) + server),
      }
      const time = { earliestMs: now + server - 7, latestMs: now + server + 7 }
      assert.ok(readyAtLeastMs(pod, time) <= since)
      assert.ok(readyAtMostMs(pod, time) >= since)
    }),
  )
})

test('a kubelet whose clock is set forward while a pod starts takes nothing from how long it may have been ready', () => {
  const times = { createdMs: EPOCH, startedMs: EPOCH, readyWrittenMs: EPOCH + 5_000 }
  const time = { earliestMs: EPOCH + 20_000, latestMs: EPOCH + 20_000 }
  assert.equal(readyAtMostMs({ ...times, readySinceMs: EPOCH + 5_000 }, time), 16_000)
  assert.equal(readyAtMostMs({ ...times, readySinceMs: EPOCH + 35_000 }, time), 14_000)
})

test('nothing is certain without the clock of the API server, or its stamps', () => {
  const pod = { createdMs: EPOCH, startedMs: 0, readySinceMs: EPOCH, readyWrittenMs: EPOCH }
  const time = { earliestMs: EPOCH + 60_000, latestMs: EPOCH + 61_000 }
  assert.deepEqual([readyAtLeastMs(pod, undefined), readyAtMostMs(pod, undefined)], [0, Number.POSITIVE_INFINITY])
  const bare = { ...pod, createdMs: 0, readyWrittenMs: 0 }
  assert.deepEqual([readyAtLeastMs(bare, time), readyAtMostMs(bare, time)], [0, Number.POSITIVE_INFINITY])
  assert.deepEqual([readyAtLeastMs(pod, time), readyAtMostMs(pod, time)], [59_000, 61_000])
})
