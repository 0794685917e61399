// A failover of Redis under load of three replicas, against the rule of docs/shared-limits.md.

import assert from 'node:assert/strict'
import { type LimitReplica, mostInWindow } from '../gateways/limit-replica.ts'
import {
  admittedBy,
  allKeepToTheirPart,
  allShare,
  longestStall,
  threeReplicas,
  tokenBucket,
  untilAdmitted,
} from './limit-replicas.ts'
import type { RedisServer } from './topology.ts'

export const QPS = 300
const BURST = 60
/** docs: at most burst + qps * (t + 50 ms), and half of the burst once more for each failover. */
export const AHEAD_MS = 50

export async function underLoad(url: string, started: (one: LimitReplica) => void): Promise<readonly LimitReplica[]> {
  const replicas = await threeReplicas({ url }, tokenBucket(QPS, BURST), started)
  for (const one of replicas) one.demand((2 * QPS) / 3)
  await untilAdmitted(QPS, replicas)
  return replicas
}

/** What was admitted in the whole time of `during`, and in each second of it, against the rule. */
export async function assertWithinTheRule(
  replicas: readonly LimitReplica[],
  during: () => Promise<void>,
): Promise<void> {
  const startMs = performance.now()
  const from = replicas.map(({ admitted }) => admitted.length)
  const [before, stalledBefore] = [admittedBy(replicas), longestStall(replicas)]
  await during()
  const stalledMs = longestStall(replicas) - stalledBefore
  const most = (ms: number): number => BURST + BURST / 2 + (QPS * (ms + AHEAD_MS + stalledMs)) / 1000
  const ms = performance.now() - startMs
  const admitted = admittedBy(replicas) - before
  assert.ok(admitted <= most(ms), `${admitted} admitted in ${ms} ms, at most ${most(ms)}`)
  const inSecond = mostInWindow(
    replicas.flatMap(({ admitted }, i) => admitted.slice(from[i])),
    1_000,
  )
  assert.ok(inSecond <= most(1_000), `${inSecond} admitted in a second, at most ${most(1_000)}`)
}

/** The master goes, another comes; requests are served all the time. */
export async function failOver(replicas: readonly LimitReplica[], lose: () => Promise<void>): Promise<void> {
  await lose()
  await allKeepToTheirPart(replicas)
  // While there is no master: each serves on.
  for (const one of replicas) await untilAdmitted(QPS / 10, [one])
  await allShare(replicas)
  await untilAdmitted(QPS, replicas)
}

export function assertMoved(replicas: readonly LimitReplica[], lost: RedisServer): void {
  const nodes = new Set(replicas.map((one) => one.limits.status().node))
  assert.equal(nodes.size, 1, [...nodes].join(' '))
  assert.doesNotMatch([...nodes].join(), new RegExp(`^$|:${lost.port}$`))
  for (const { logged, limits } of replicas) {
    const levels = logged.map(({ level }) => level)
    assert.deepEqual(levels, ['info', 'warn', 'info'], JSON.stringify(logged))
    assert.equal(limits.status().lastError, '')
  }
}
