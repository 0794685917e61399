// Formats the answer of `portcullis sessions` as lines.

import { formatDuration } from '../../../kit/core/text/duration.ts'
import { printable } from '../../../kit/core/text/printable.ts'
import { textTable } from '../../../kit/core/text/text-table.ts'
import type { SessionAnswer } from './session-report.ts'

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
