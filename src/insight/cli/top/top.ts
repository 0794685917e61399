// `portcullis top`: the top talkers, refreshed in place.

import { AdminClient, type AdminClientOptions } from '../../../cli/client/admin-client.ts'
import type { CommandOutput } from '../../../cli/command/output.ts'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { fitWidth, printable, safeJson } from '../../../kit/core/text/printable.ts'
import type { Screen } from '../../../kit/io/world/terminal.ts'
import { readTopQuery } from '../../core/top/query.ts'
import { isTopAnswer, type TopAnswer, topLines } from '../../core/top/top-lines.ts'

export interface TopOptions extends AdminClientOptions, Pick<CommandOutput, 'out'> {
  readonly by: string
  readonly sort: string
  readonly minutes: string
  readonly limit: string
  /** Names and globs; [] = all. */
  readonly clusters: readonly string[]
  /** By label. */
  readonly selector?: string
  readonly output: 'text' | 'json'
  /** Query once, even on a terminal. */
  readonly once: boolean
  /** undefined = output doesn't go to a terminal. */
  readonly openScreen: () => Screen | undefined
}

const REFRESH_MS = 2_000

/** Resolves with the exit code. @throws {UserError} if the gateway can't be queried */
export async function top(options: TopOptions): Promise<number> {
  const { output, once, out, openScreen } = options
  const path = pathOf(options)
  const client = new AdminClient(options)
  const first = await ask(client, path)
  if (output === 'json') {
    out(`${safeJson(first)}\n`)
    return 0
  }
  const screen = once ? undefined : openScreen()
  if (screen === undefined) {
    out(`${topLines(first).join('\n')}\n`)
    return 0
  }
  try {
    await refresh(client, path, first, screen)
  } finally {
    screen.close()
  }
  return 0
}

async function refresh(client: AdminClient, path: string, first: TopAnswer, screen: Screen): Promise<void> {
  let shown = first
  let trouble = ''
  do {
    const lines = topLines(shown, screen.columns)
    if (trouble !== '') lines.splice(1, 0, fitWidth(printable(trouble), screen.columns))
    screen.show(lines)
    if (!(await screen.wait(REFRESH_MS))) return
    try {
      shown = await ask(client, path)
      trouble = ''
    } catch (error) {
      if (!(error instanceof UserError)) throw error
      trouble = `not refreshed: ${error.message}`
    }
  } while (await screen.wait(0))
}

/** @throws {UserError} */
function pathOf({ by, sort, minutes, limit, clusters, selector }: TopOptions): string {
  const query = new URLSearchParams({ by, sort, minutes, limit, replicas: 'all' })
  for (const name of clusters) query.append('cluster', name)
  if (selector !== undefined) query.set('selector', selector)
  const read = readTopQuery(query)
  if ('problem' in read) throw new UserError(`--${read.problem}`, 'see portcullis help top')
  return `/api/v1/top?${query}`
}

async function ask(client: AdminClient, path: string): Promise<TopAnswer> {
  const answer = await client.json({ path })
  if (isTopAnswer(answer)) return answer
  throw new UserError(`${client.url.origin} does not answer as a gateway of this version does`, 'check --admin')
}
