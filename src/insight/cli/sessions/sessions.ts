// `portcullis sessions`: which users are logged in, over all threads and replicas.

import { AdminClient, type AdminClientOptions } from '../../../cli/client/admin-client.ts'
import type { CommandOutput } from '../../../cli/command/output.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { safeJson } from '../../../kit/core/text/printable.ts'
import { isSessionAnswer, readSessionQuery, sessionLines } from '../../core/sessions/session-report.ts'

export interface SessionsOptions extends AdminClientOptions, Pick<CommandOutput, 'out'> {
  /** Names and globs; [] = all. */
  readonly clusters: readonly string[]
  /** By label. */
  readonly selector?: string
  /** Default: all. */
  readonly user?: string
  readonly limit: string
  readonly output: 'text' | 'json'
  readonly now: () => number
}

/** Resolves with the exit code: 1 if a replica has not answered. @throws {UserError} if the gateway can't be queried */
export async function sessions(options: SessionsOptions): Promise<number> {
  const { clusters, selector, user, limit, output, out, now } = options
  const query = new URLSearchParams({ limit, replicas: 'all' })
  for (const name of clusters) query.append('cluster', name)
  if (selector !== undefined) query.set('selector', selector)
  if (user !== undefined) query.set('user', user)
  const read = readSessionQuery(query)
  if ('problem' in read) throw new UserError(`--${read.problem}`, 'see portcullis help sessions')
  const client = new AdminClient(options)
  const answer = await client.json({ path: `/api/v1/sessions?${query}` })
  if (!isSessionAnswer(answer)) {
    throw new UserError(`${client.url.origin} does not answer as a gateway of this version does`, 'check --admin')
  }
  out(output === 'json' ? `${safeJson(answer)}\n` : `${sessionLines(answer, now()).join('\n')}\n`)
  return (answer.missing ?? []).length === 0 ? 0 : 1
}
