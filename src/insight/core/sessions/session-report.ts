// The response of `/api/v1/sessions` (docs/revoking.md): which users are logged in where, over all threads and replicas.

import type { IdentitySeen } from '../../../gateway/api/identity-seen.ts'
import type { ClusterChoice } from '../../../gateway/core/choice/choose-clusters.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { formatDuration } from '../../../kit/core/text/duration.ts'
import { printable } from '../../../kit/core/text/printable.ts'
import { textTable } from '../../../kit/core/text/text-table.ts'
import { readClusters } from '../top/query.ts'

export interface SessionsReport {
  /** Those seen last come first. */
  readonly sessions: readonly IdentitySeen[]
  /** There are more than the limit. */
  readonly more: boolean
}

/** A report of all replicas. */
export interface SessionAnswer extends SessionsReport {
  /** Replicas that did not answer. */
  readonly missing?: readonly string[]
}

export interface SessionQuery {
  /** '' = all. */
  readonly user: string
  readonly limit: number
  /** As TopQuery. */
  readonly cluster: string
  readonly choice: ClusterChoice | undefined
}

export const MAX_SESSIONS = 1_000
export const DEFAULT_SESSIONS = 100

/** @returns one line for the client if a parameter is invalid */
export function readSessionQuery(
  query: Pick<URLSearchParams, 'get' | 'getAll'>,
): SessionQuery | { readonly problem: string } {
  const limitText = query.get('limit') ?? String(DEFAULT_SESSIONS)
  const limit = /^\d{1,4}$/.test(limitText) ? Number(limitText) : 0
  if (limit < 1 || limit > MAX_SESSIONS) {
    return { problem: `limit=${limitText.slice(0, 100)}: it is a number from 1 to ${MAX_SESSIONS}` }
  }
  const clusters = readClusters(query)
  return 'problem' in clusters ? clusters : { user: query.get('user') ?? '', limit, ...clusters }
}

/** @param reports of threads, or of replicas @param isMore one of them is not complete */
export function sumOfSessions(
  reports: Iterable<readonly IdentitySeen[]>,
  limit: number,
  isMore: boolean,
  isWanted: (cluster: string) => boolean = () => true,
): SessionsReport {
  const sums = new Map<string, IdentitySeen>()
  for (const report of reports) {
    for (const one of report) {
      if (!isWanted(one.cluster)) continue
      const key = `${one.cluster} ${one.by} ${one.user}`
      const known = sums.get(key)
      sums.set(key, known === undefined ? one : sumOf(known, one))
    }
  }
  const all = [...sums.values()].sort((a, b) => b.lastMs - a.lastMs || compare(a.user, b.user))
  return { sessions: all.slice(0, limit), more: isMore || all.length > limit }
}

function sumOf(a: IdentitySeen, b: IdentitySeen): IdentitySeen {
  return {
    ...a,
    sinceMs: Math.min(a.sinceMs, b.sinceMs),
    lastMs: Math.max(a.lastMs, b.lastMs),
    expiresMs: Math.max(a.expiresMs, b.expiresMs),
    open: a.open + b.open,
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const TEXTS = ['cluster', 'user', 'by'] as const
const NUMBERS = ['sinceMs', 'lastMs', 'expiresMs', 'open'] as const

/** Type guard for a JSON answer of this version. */
export function isSessionAnswer(value: unknown): value is SessionAnswer {
  if (!isRecord(value) || typeof value['more'] !== 'boolean' || !Array.isArray(value['sessions'])) return false
  return value['sessions'].every(
    (one: unknown) =>
      isRecord(one) &&
      TEXTS.every((name) => typeof one[name] === 'string') &&
      NUMBERS.every((name) => typeof one[name] === 'number'),
  )
}

const HEAD = ['LAST SEEN', 'SINCE', 'EXPIRES', 'OPEN', 'CLUSTER', 'LOGIN', 'USER']

/** @param nowMs milliseconds since the epoch */
export function sessionLines({ sessions, more, missing = [] }: SessionAnswer, nowMs: number): string[] {
  const lines = missing.map((one) => `no answer from ${printable(one)}: the users that it has seen are missing`)
  if (sessions.length === 0) return [...lines, 'no sessions']
  const rows = sessions.map(({ lastMs, sinceMs, expiresMs, open, cluster, by, user }) => [
    ago(nowMs - lastMs),
    ago(nowMs - sinceMs),
    expiresMs === 0 ? '-' : expiresMs <= nowMs ? 'expired' : `in ${inSeconds(expiresMs - nowMs)}`,
    String(open),
    printable(cluster),
    printable(by),
    printable(user),
  ])
  lines.push(
    ...textTable([HEAD, ...rows])
      .trimEnd()
      .split('\n'),
  )
  return more ? [...lines, '', 'there are more: name a cluster, --user, or a higher --limit'] : lines
}

function ago(ms: number): string {
  return ms < 1_000 ? 'now' : `${inSeconds(ms)} ago`
}

function inSeconds(ms: number): string {
  return formatDuration(Math.floor(ms / 1_000) * 1_000)
}
