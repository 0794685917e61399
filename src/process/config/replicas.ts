// Settings of a replica among others: its name, and the Redis through which they share limits.

import { hostname } from 'node:os'
import { parseRedisAddress, type RedisAddress } from '../../gateway/io/redis/address.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { file, integer, settings, text, type ValuesOf } from './setting-rows.ts'
import { parseRedisUrl } from './setting-values.ts'
import type { SettingsReader } from './settings-reader.ts'

export const REPLICAS = settings({
  /** Unique among the replicas. */
  replicaName: text('<name>', '', 'name of this replica in status and leases; default: the host name', {
    absent: hostname(),
  }),
  /** '' = no limits across replicas. */
  redisUrl: text(
    '<url>',
    '',
    'Redis through which replicas share limits: redis://, redis+sentinel:// or redis+cluster://, with rediss for TLS; default: none',
    { parse: parseRedisUrl },
  ),
  redisPasswordFile: file('file that holds only the password of --redis-url'),
  redisSentinelUser: text('<name>', '', 'user at the Sentinels; default: default'),
  redisSentinelPasswordFile: file('file that holds only the password for the Sentinels of --redis-url'),
  redisCaFile: file('CAs (PEM) that verify Redis and its Sentinels; default: those of the system'),
  redisCertFile: file('client certificate (PEM) shown to Redis'),
  redisKeyFile: file('private key (PEM) of --redis-cert-file'),
  /** '' = each connection's host. */
  redisTlsServerName: text('<name>', '', 'name that the certificates of Redis must have; default: the host in the URL'),
  /** Number of replicas, until Redis has responded once. */
  expectedReplicas: integer(
    '1',
    1,
    1_000,
    'number of replicas by which shared limits are divided until Redis has answered once',
  ),
})

type ReplicasConfig = ValuesOf<typeof REPLICAS>

/** Errors in combinations of settings. */
export function checkReplicas(config: ReplicasConfig, reader: SettingsReader): void {
  const table = REPLICAS
  if (isWrong(reader, table.redisUrl)) return
  const { redisUrl } = config
  for (const name of BESIDE_URL) {
    if (config[name] === '' || redisUrl !== '') continue
    addProblem(reader, table[name], `is given without ${table.redisUrl.flag}`, `give ${namesOf(table.redisUrl)} too`)
  }
  if (redisUrl !== '') checkTopology(config, parseRedisAddress(redisUrl), reader)
}

const OF_SENTINELS = ['redisSentinelUser', 'redisSentinelPasswordFile'] as const
const OF_TLS = ['redisCaFile', 'redisCertFile', 'redisKeyFile', 'redisTlsServerName'] as const
const BESIDE_URL = ['redisPasswordFile', ...OF_SENTINELS, ...OF_TLS] as const

/** Rejects settings that do not apply to the topology of the URL. */
function checkTopology(config: ReplicasConfig, address: RedisAddress, reader: SettingsReader): void {
  const table = REPLICAS
  const { flag } = table.redisUrl
  const { redisPasswordFile, redisSentinelUser, redisSentinelPasswordFile, redisCertFile, redisKeyFile } = config
  for (const name of address.topology === 'sentinel' ? [] : OF_SENTINELS) {
    if (config[name] === '') continue
    addProblem(reader, table[name], `has no meaning, because ${flag} names no Sentinels`, 'write redis+sentinel://')
  }
  for (const name of address.tls ? [] : OF_TLS) {
    if (config[name] === '') continue
    addProblem(reader, table[name], `has no meaning, because ${flag} is not TLS`, 'write rediss instead of redis')
  }
  if (address.password !== '' && redisPasswordFile !== '') {
    addProblem(
      reader,
      table.redisPasswordFile,
      `is a second password, in addition to that in ${flag}`,
      'give one of the two',
    )
  }
  if (redisSentinelUser !== '' && redisSentinelPasswordFile === '') {
    const fix = `give ${table.redisSentinelPasswordFile.flag} too`
    addProblem(reader, table.redisSentinelUser, 'is given without a password', fix)
  }
  if ((redisCertFile === '') === (redisKeyFile === '')) return
  const [given, missing] =
    redisCertFile === ''
      ? ([table.redisKeyFile, table.redisCertFile] as const)
      : ([table.redisCertFile, table.redisKeyFile] as const)
  addProblem(reader, given, `is given without ${missing.flag}`, `give ${namesOf(missing)} too`)
}
