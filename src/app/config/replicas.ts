// The settings of a replica among others: its name, and the Redis by which they share limits.

import { hostname } from 'node:os'
import { parseRedisAddress, type RedisAddress } from '../../io/redis/address.ts'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { integerBetween, parseRedisUrl, parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface ReplicasConfig {
  /** Unique among the replicas. */
  readonly replicaName: string
  /** '' = no limits across replicas. */
  readonly redisUrl: string
  readonly redisPasswordFile: string
  readonly redisSentinelUser: string
  readonly redisSentinelPasswordFile: string
  readonly redisCaFile: string
  readonly redisCertFile: string
  readonly redisKeyFile: string
  /** '' = the host of each connection. */
  readonly redisTlsServerName: string
  /** Number of replicas, until Redis has answered once. */
  readonly expectedReplicas: number
}

/** Rows of the table of settings, in the order of help. */
export const REPLICAS_TABLE: { readonly [Name in keyof ReplicasConfig]: Setting<ReplicasConfig[Name]> } = {
  replicaName: setting(
    'replicaName',
    '<name>',
    '',
    parseText,
    'name of this replica in status and leases; default: the host name',
  ),
  redisUrl: setting(
    'redisUrl',
    '<url>',
    '',
    parseRedisUrl,
    'Redis by which replicas share global limits: redis://, redis+sentinel:// or redis+cluster://, rediss for TLS; default: none',
  ),
  redisPasswordFile: setting(
    'redisPasswordFile',
    '<file>',
    '',
    parseText,
    'file that holds only the password of --redis-url',
  ),
  redisSentinelUser: setting('redisSentinelUser', '<name>', '', parseText, 'user at the Sentinels; default: default'),
  redisSentinelPasswordFile: setting(
    'redisSentinelPasswordFile',
    '<file>',
    '',
    parseText,
    'file that holds only the password for the Sentinels of --redis-url',
  ),
  redisCaFile: setting(
    'redisCaFile',
    '<file>',
    '',
    parseText,
    'CAs (PEM) that verify Redis and its Sentinels; default: those of the system',
  ),
  redisCertFile: setting('redisCertFile', '<file>', '', parseText, 'client certificate (PEM) shown to Redis'),
  redisKeyFile: setting('redisKeyFile', '<file>', '', parseText, 'private key (PEM) of --redis-cert-file'),
  redisTlsServerName: setting(
    'redisTlsServerName',
    '<name>',
    '',
    parseText,
    'name that certificates of Redis must have; default: the host that is connected to',
  ),
  expectedReplicas: setting(
    'expectedReplicas',
    '<n>',
    '1',
    integerBetween(1, 1_000),
    'how many replicas share global limits, until Redis has answered once',
  ),
}

export function readReplicas(reader: SettingsReader): ReplicasConfig {
  const table = REPLICAS_TABLE
  return {
    replicaName: reader.take(table.replicaName, hostname()),
    redisUrl: reader.take(table.redisUrl, ''),
    redisPasswordFile: reader.take(table.redisPasswordFile, ''),
    redisSentinelUser: reader.take(table.redisSentinelUser, ''),
    redisSentinelPasswordFile: reader.take(table.redisSentinelPasswordFile, ''),
    redisCaFile: reader.take(table.redisCaFile, ''),
    redisCertFile: reader.take(table.redisCertFile, ''),
    redisKeyFile: reader.take(table.redisKeyFile, ''),
    redisTlsServerName: reader.take(table.redisTlsServerName, ''),
    expectedReplicas: reader.take(table.expectedReplicas, 1),
  }
}

/** Errors in combinations of settings. */
export function checkReplicas(config: ReplicasConfig, reader: SettingsReader): void {
  const table = REPLICAS_TABLE
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

/** What the URL does not say has no settings. */
function checkTopology(config: ReplicasConfig, address: RedisAddress, reader: SettingsReader): void {
  const table = REPLICAS_TABLE
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
    addProblem(reader, table.redisPasswordFile, `is a second password beside that in ${flag}`, 'give one of the two')
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
