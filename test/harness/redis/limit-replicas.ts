// Several replicas that share limits, and what they let in together.

import assert from 'node:assert/strict'
import type { FlowControlSchema } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { type LimitReplica, type ReplicaOptions, startReplica } from '../gateways/limit-replica.ts'
import { waitFor } from '../wait.ts'

export function tokenBucket(qps: number, burst: number): FlowControlSchema {
  const limit = { qps, burst }
  return { name: 'rate', strategy: 'globalCount', tokenBucket: limit, globalTokenBucket: limit }
}

/** Three replicas that know each other; they are given to `started` at once. */
export async function threeReplicas(
  options: ReplicaOptions,
  schema: FlowControlSchema,
  started: (one: LimitReplica) => void,
): Promise<readonly LimitReplica[]> {
  const replicas = [1, 2, 3].map((i) => startReplica({ ...options, expectedReplicas: 3, name: `r${i}` }, schema))
  for (const one of replicas) started(one)
  await allShare(replicas)
  return replicas
}

export async function allShare(replicas: readonly LimitReplica[]): Promise<void> {
  await waitFor('all replicas to share the limit', () =>
    replicas.every((one) => {
      const { mode, replicas: known } = one.limits.status()
      return mode === 'shared' && known.length === replicas.length
    }),
  )
}

export async function allKeepToTheirPart(replicas: readonly LimitReplica[]): Promise<void> {
  await waitFor('all replicas to notice', () => replicas.every((one) => one.limits.status().mode === 'parted'))
}

export function admittedBy(replicas: readonly LimitReplica[]): number {
  return replicas.reduce((sum, { admitted }) => sum + admitted.length, 0)
}

export function longestStall(replicas: readonly LimitReplica[]): number {
  return Math.max(...replicas.map((one) => one.stalledMs()))
}

/** Waits until the replicas have been asked for so long that many were admitted. */
export async function untilAdmitted(more: number, replicas: readonly LimitReplica[]): Promise<void> {
  const before = admittedBy(replicas)
  await waitFor(`${more} more requests`, () => admittedBy(replicas) - before >= more)
}

/** No text of the replicas says it: logs, status, errors. */
export function assertNotSaid(replicas: readonly LimitReplica[], ...secrets: readonly string[]): void {
  const said = JSON.stringify(replicas.map(({ logged, limits, redis }) => [logged, limits.status(), redis.error]))
  for (const secret of secrets) assert.ok(!said.includes(secret), said)
}
