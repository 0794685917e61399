// One replica of the gateway as far as limits go: the cluster table, the limits shared through Redis, and a stream of requests
// that come evenly at a given rate. What was admitted is known by the clock of the machine.

import { randomUUID } from 'node:crypto'
import type { FlowControlSchema } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import {
  type GlobalLimits,
  type KeptPart,
  startGlobalLimits,
} from '../../../src/gateway/controllers/limits/global-limits.ts'
import { compileCluster } from '../../../src/gateway/core/cluster/compile-cluster.ts'
import type { CompiledSchema } from '../../../src/gateway/core/cluster/compiled-cluster.ts'
import { release } from '../../../src/gateway/core/limits/flow-control.ts'
import type { FlowCounter } from '../../../src/gateway/core/limits/flow-counter.ts'
import type { RedisOptions } from '../../../src/gateway/io/redis/client.ts'
import { createRedisLimits, type RedisLimits } from '../../../src/gateway/io/redis/limits.ts'
import { ClusterTable } from '../../../src/gateway/state/clusters.ts'
import type { FlowTable } from '../../../src/gateway/state/flow-tables.ts'
import type { Logger } from '../../../src/kit/api/ports.ts'
import { systemClock } from '../../../src/kit/io/world/clock.ts'

export interface ReplicaOptions extends Partial<RedisOptions> {
  readonly url: string
  readonly expectedReplicas?: number
  readonly name?: string
  readonly kept?: KeptPart
}

export interface LimitReplica {
  readonly limits: GlobalLimits
  readonly redis: RedisLimits
  readonly flows: FlowTable
  readonly logged: readonly { readonly level: string; readonly message: string; readonly error: unknown }[]
  /** When requests were admitted, milliseconds of the machine's clock. */
  readonly admitted: readonly number[]
  refused(): number
  /** For how many milliseconds, in all, this process stood still, so that no requests came while the limit filled up. */
  stalledMs(): number
  /** Requests a second from now on; each that is admitted ends at once. */
  demand(perSecond: number): void
  /** Puts another limit in force. */
  apply(...schemas: readonly FlowControlSchema[]): void
  /** One request now; undefined = refused. What comes out is for `end`. */
  begin(name?: string): Running | undefined
  /** As a crash does it: nothing is given back. */
  crash(): void
  stop(): Promise<void>
}

export interface Running {
  end(): void
}

const EVERY_MS = 2
const LATE_MS = 50

export function startReplica(options: ReplicaOptions, ...schemas: readonly FlowControlSchema[]): LimitReplica {
  const logged: { level: string; message: string; error: unknown }[] = []
  const logAs =
    (level: string) =>
    (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
      void logged.push({ level, message, error: fields['error'] })
  const log: Logger = { debug: logAs('debug'), info: logAs('info'), warn: logAs('warn'), error: logAs('error') }
  const clusters = new ClusterTable()
  let revision = 0
  let compiled: readonly CompiledSchema[] = []
  const apply = (...next: readonly FlowControlSchema[]): void => {
    revision++
    clusters.change([compileCluster(clusterWith(next, String(revision)))], [], systemClock.monotonic())
    compiled = clusters.get('prod')?.compiled.schemas ?? []
  }
  apply(...schemas)
  const { password = '', ca = '', expectedReplicas = 1, name = 'replica' } = options
  const redis = createRedisLimits({ ...options, password, ca }, Math.random, log)
  const replica = `${name}/${randomUUID().slice(0, 8)}`
  const limits = startGlobalLimits({
    clusters,
    redis,
    replica,
    expectedReplicas,
    kept: options.kept,
    clock: systemClock,
    random: Math.random,
    log,
  })
  const admitted: number[] = []
  let refused = 0
  const begin = (schemaName?: string): Running | undefined => {
    const schema = schemaName === undefined ? compiled[0] : compiled.find((one) => one.name === schemaName)
    const flows = clusters.get('prod')?.flows
    if (schema === undefined || flows === undefined) throw new Error('no such limit')
    const nowMs = systemClock.monotonic()
    const counter: FlowCounter | undefined = flows.tryAcquire(schema, 'user', nowMs)
    if (counter === undefined) {
      refused++
      return undefined
    }
    admitted.push(nowMs)
    return { end: () => release(schema, counter) }
  }
  let perSecond = 0
  let owed = 0
  let lastMs = systemClock.monotonic()
  let stalledMs = 0
  const timer = setInterval(() => {
    const nowMs = systemClock.monotonic()
    // A pause of this process is not a burst of its clients.
    owed += (Math.min(nowMs - lastMs, LATE_MS) * perSecond) / 1000
    stalledMs += Math.max(0, nowMs - lastMs - LATE_MS)
    lastMs = nowMs
    for (; owed >= 1; owed--) begin()?.end()
  }, EVERY_MS)
  const flows = clusters.get('prod')?.flows
  if (flows === undefined) throw new Error('no cluster')
  return {
    limits,
    redis,
    flows,
    logged,
    admitted,
    refused: () => refused,
    stalledMs: () => stalledMs,
    demand(rate) {
      perSecond = rate
      owed = 0
    },
    apply,
    begin,
    crash() {
      clearInterval(timer)
      redis.close()
    },
    async stop() {
      clearInterval(timer)
      await limits.stop()
    },
  }
}

function clusterWith(
  flowControlSchemas: readonly FlowControlSchema[],
  revision: string,
): Parameters<typeof compileCluster>[0] {
  return {
    revision,
    object: {
      apiVersion: 'proxy.kubegateway.io/v1alpha1',
      kind: 'UpstreamCluster',
      metadata: { name: 'prod' },
      spec: {
        servers: [{ endpoint: 'https://127.0.0.1:1' }],
        flowControl: { flowControlSchemas },
        dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      },
    },
  }
}

/** The most that were admitted in any window of `windowMs`; `times` in any order. */
export function mostInWindow(times: readonly number[], windowMs: number): number {
  const sorted = [...times].sort((a, b) => a - b)
  let most = 0
  let first = 0
  for (const [index, time] of sorted.entries()) {
    while ((sorted[first] ?? 0) <= time - windowMs) first++
    most = Math.max(most, index - first + 1)
  }
  return most
}
