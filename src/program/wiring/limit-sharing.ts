// Limits shared by replicas, and the files with the Redis credentials: reread whenever they change. Unusable ones are refused with one log line, and
// the previous ones stay in use.

import { randomUUID } from 'node:crypto'
import { type KeptPart, startGlobalLimits } from '../../gateway/controllers/limits/global-limits.ts'
import type { LastGoodKeeper } from '../../gateway/io/last-good/keeper.ts'
import { readRedisCredentials, redisFiles } from '../../gateway/io/redis/credentials.ts'
import { createRedisLimits } from '../../gateway/io/redis/limits.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { exposeGlobalLimits } from '../../gateway/metrics/main-thread-series.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import { isRecord } from '../../kit/api/json/object-shape.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import { RareWarnings } from '../../kit/io/logs/rare-warnings.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { AddressFailures, type FailureOptions } from '../../process/failures/address-failures.ts'
import type { LastGoodStates } from '../last-good/states.ts'

/** undefined = without Redis. @throws {UserError} if a file is unusable */
export function shareLimits(
  config: Config,
  clusters: ClusterTable,
  clock: Clock,
  log: Logger,
  lastGood: LastGoodStates,
) {
  const { redisUrl: url, redisSentinelUser: sentinelUser, redisTlsServerName: serverName } = config
  if (url === '') return undefined
  let credentials = readRedisCredentials(config)
  const redis = createRedisLimits({ url, sentinelUser, serverName, ...credentials }, Math.random, log)
  // Differs after a restart, so that it does not inherit what the previous process held.
  const replica = `${config.replicaName}_${randomUUID()}`
  const { expectedReplicas } = config
  const keeper = lastGood.keeperIfWritable('replicas', redis.address)
  const kept = keeper && keptPart(keeper)
  const limits = startGlobalLimits({
    clusters,
    redis,
    replica,
    expectedReplicas,
    kept,
    clock,
    random: Math.random,
    log,
  })
  const files = redisFiles(config)
  const read = (): void => {
    credentials = readRedisCredentials(config)
    redis.renew(credentials)
  }
  const reloaded =
    files.length === 0
      ? undefined
      : new ReloadedFiles({ label: 'redis', what: 'the files for Redis', files, read, log })
  return {
    name: 'limits',
    limits,
    counter: (name: string, points: number, durationSeconds: number) => redis.counter(name, points, durationSeconds),
    get certificates(): readonly OwnCertificate[] {
      const { cert = '', ca } = credentials
      const own: OwnCertificate[] = [
        { name: 'redis-client', pem: cert },
        { name: 'redis-ca', pem: ca },
      ]
      return own.filter(({ pem }) => pem !== '')
    },
    /** Whether the files' content is in use; empty without files. */
    get reloads(): ReadonlyMap<string, boolean> {
      return new Map(reloaded && [[reloaded.label, reloaded.inForce && redis.renewalProblem === '']])
    },
    exposeMetrics: (into: Exposition) => exposeGlobalLimits(into, limits.status()),
    stop: () => {
      reloaded?.stop()
      return limits.stop()
    },
  }
}

// Stores this replica's part of shared limits, so that a start without Redis takes no more than before.

const NAME = 'part'

export function keptPart(keeper: Pick<LastGoodKeeper, 'restore' | 'serves' | 'put' | 'current'>): KeptPart {
  return {
    restore: () => {
      const state = keeper.restore()
      const record = state?.records[0]
      if (state === undefined || !isRecord(record)) return undefined
      const { replicas, rank } = record
      // Another version may have used a different format.
      if (!isCount(replicas) || !isCount(rank)) return undefined
      keeper.serves(state.timeMs)
      return { replicas, rank }
    },
    keep: ({ replicas, rank }) => keeper.put(NAME, { replicas, rank }),
    current: (current) => keeper.current(current),
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

// Where failures are counted: in this process, or in Redis for all replicas.

/** @param shared counters of all replicas; undefined = no Redis */
export function createFailures(
  {
    maxAuthenticationFailures,
    authenticationFailureBlockMs,
  }: Pick<Config, 'maxAuthenticationFailures' | 'authenticationFailureBlockMs'>,
  shared: FailureOptions['shared'],
  clock: Clock,
  log: Logger,
): AddressFailures {
  const [uncounted, blocked] = [new RareWarnings({ clock, log }), new RareWarnings({ clock, log })]
  const failures = new AddressFailures({
    free: maxAuthenticationFailures,
    longestBlockMs: authenticationFailureBlockMs,
    nowMs: () => clock.monotonic(),
    ...(shared !== undefined && { shared }),
    onError: (error) => uncounted.warn('failed credentials could not be counted', { error }),
  })
  failures.onBlocked((blocks) =>
    blocked.warn('an address is blocked: too many of its credentials or handshakes have failed', { ...blocks[0] }),
  )
  return failures
}
