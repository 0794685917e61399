// Limits shared by replicas, and the files with the Redis credentials: reread whenever they change. Unusable ones are refused with one log line, and
// the previous ones stay in use.

import { randomUUID } from 'node:crypto'
import { startGlobalLimits } from '../../gateway/controllers/limits/global-limits.ts'
import { readRedisCredentials, redisFiles } from '../../gateway/io/redis/credentials.ts'
import { createRedisLimits } from '../../gateway/io/redis/limits.ts'
import type { Exposition } from '../../gateway/metrics/exposition.ts'
import { exposeGlobalLimits } from '../../gateway/metrics/main-thread-series.ts'
import type { ClusterTable } from '../../gateway/state/clusters.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { OwnCertificate } from '../../process/certificates/own-certificates.ts'
import type { Config } from '../../process/config/config.ts'
import { ReloadedFiles } from '../../process/config/reloaded-files.ts'
import { keptPart } from '../last-good/kept-part.ts'
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
