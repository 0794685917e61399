// The settings of a replica among others: its name, and the Redis by which they share limits.

import { hostname } from 'node:os'
import { addProblem, isWrong, namesOf } from './setting-problems.ts'
import { integerBetween, parseRedisUrl, parseText } from './setting-values.ts'
import { type Setting, type SettingsReader, setting } from './settings-reader.ts'

export interface ReplicasConfig {
  /** Unique among the replicas. */
  readonly replicaName: string
  /** '' = no limits across replicas. */
  readonly redisUrl: string
  readonly redisPasswordFile: string
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
    'redis:// or rediss:// URL of the Redis that replicas share global limits by; default: none',
  ),
  redisPasswordFile: setting(
    'redisPasswordFile',
    '<file>',
    '',
    parseText,
    'file that holds only the password of --redis-url',
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
    expectedReplicas: reader.take(table.expectedReplicas, 1),
  }
}

/** Errors in combinations of settings. */
export function checkReplicas({ redisUrl, redisPasswordFile }: ReplicasConfig, reader: SettingsReader): void {
  const table = REPLICAS_TABLE
  if (redisPasswordFile === '' || redisUrl !== '' || isWrong(reader, table.redisUrl)) return
  const message = `is given without ${table.redisUrl.flag}`
  addProblem(reader, table.redisPasswordFile, message, `give ${namesOf(table.redisUrl)} too`)
}
