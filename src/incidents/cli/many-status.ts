// `portcullis degrade --status` of several clusters: a summary by mode, what is not in force, and how far recoveries are.

import { LINES } from '../../cli/client/change-many.ts'
import { faultLines, grouped, reasonLines } from '../../cli/client/change-plan.ts'
import { readAgain } from '../../cli/client/chosen-clusters.ts'
import { metadataOf } from '../../cli/client/control-plane.ts'
import { type AppliedCluster, waitAllApplied } from '../../cli/client/wait-all-applied.ts'
import type { DegradeMode } from '../../gateway/api/upstream-cluster/degrade-modes.ts'
import type { UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import { listed } from '../../gateway/core/choice/choose-clusters.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf } from '../../kit/api/json/object-shape.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { SwitchFlags } from './change.ts'
import { stateText } from './many-plan.ts'
import { degradeOf, deniesAll, goalOf, modeAt } from './state.ts'

interface StatusOptions extends Pick<SwitchFlags, 'now' | 'out' | 'err' | 'pollMs'> {
  readonly output?: string
}

/** The exit code: 1 if a replica doesn't have one of them in force in time, or a mode only counts. */
export async function statusOfMany(
  client: ObjectClient,
  names: readonly string[],
  timeoutMs: number,
  { now, out, err, output, pollMs }: StatusOptions,
): Promise<number> {
  const found = await waitAllApplied({ client, timeoutMs, now, ...(pollMs !== undefined && { pollMs }) }, names)
  const clusters = [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, applied]) => ({ name, ...applied }))
  const faults = new Map(clusters.filter(({ fault }) => fault !== '').map(({ name, fault }) => [name, fault]))
  for (const name of names) if (!found.has(name)) faults.set(name, 'it was deleted')
  const replicas = Math.max(0, ...clusters.map((one) => one.replicas))
  out(
    `${names.length} clusters: ${names.length - faults.size} in force on every replica (${replicas}), ${faults.size} not\n`,
  )
  const rows = grouped(clusters, ({ object }) => cellsOf(object, now()).join('\n')).map(([key, members]) => {
    const [state = '', until = '', reason = ''] = key.split('\n')
    return [state, String(members.length), until, listed(members), reason]
  })
  out(textTable([['MODE', 'CLUSTERS', 'UNTIL', 'NAMES', 'REASON'], ...rows], '  '))
  if (output === 'wide' || names.length <= LINES) out(eachOf(clusters, now()))
  for (const line of recoveryLines(clusters.map(({ object }) => object))) out(line)
  for (const line of faultLines(faults)) err(`error: ${line}\n`)
  const odd = clusters.some(
    ({ object }) => deniesAll(object) || (degradeOf(object).shadow === true && modeAt(object, now()) !== 'Off'),
  )
  return faults.size > 0 || odd ? 1 : 0
}

function cellsOf(object: JsonObject, nowMs: number): readonly string[] {
  const { expiresAt, reason = '' } = degradeOf(object)
  const state = stateText(object, nowMs)
  if (state === 'Off') return [state, '-', '-']
  return [state, expiresAt ?? '-', reason === '' ? '-' : printable(reason.replaceAll(/\s+/g, ' '))]
}

function eachOf(clusters: readonly ({ readonly name: string } & AppliedCluster)[], nowMs: number): string {
  const rows = clusters.map(({ name, object, applied, replicas, fault }) => {
    const { generation = 1 } = metadataOf(object)
    const [state = ''] = cellsOf(object, nowMs)
    return [name, state, `${applied}/${replicas}`, String(generation), fault === '' ? 'yes' : 'no']
  })
  return textTable([['CLUSTER', 'MODE', 'REPLICAS', 'GENERATION', 'IN FORCE'], ...rows], '  ')
}

/** How many are at which step, and what they wait for. */
function recoveryLines(objects: readonly JsonObject[]): readonly string[] {
  const recovering = objects.filter((object) => degradeOf(object).recovery !== undefined)
  const steps = recovering.map((object) => {
    const { recovery } = (recordOf(object['status']) as UpstreamClusterStatus).degrade ?? {}
    const waits = recovery === undefined ? 'the leader has not evaluated it yet' : `waits for: ${recovery.waitingFor}`
    const step = recovery?.step ?? degradeOf(object).mode ?? 'Off'
    return { name: metadataOf(object).name, why: `recovery at ${step}, ${waits}` }
  })
  return reasonLines(steps).map((line) => `  ${line}\n`)
}

const POLL_MS = 1_000

/** Prints how far the recoveries are whenever that changes, until none is left. The exit code: 1 if one was ended before its goal. */
export async function watchMany(
  client: ObjectClient,
  names: readonly string[],
  { now, out, err, pollMs = POLL_MS }: StatusOptions,
): Promise<number> {
  const wanted = new Set(names)
  const goals = new Map<string, DegradeMode>()
  let shown = ''
  for (;;) {
    const objects = await readAgain(client, wanted)
    const recovering = [...objects.values()].filter((object) => degradeOf(object).recovery !== undefined)
    for (const object of recovering) goals.set(metadataOf(object).name, goalOf(object, now()))
    const text = recoveryLines(recovering).join('')
    if (text !== shown) out(`${recovering.length} of ${goals.size} on the way back\n${text}`)
    shown = text
    if (recovering.length === 0) return ended(objects, goals, now(), { out, err })
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

function ended(
  objects: ReadonlyMap<string, JsonObject>,
  goals: ReadonlyMap<string, DegradeMode>,
  nowMs: number,
  { out, err }: Pick<StatusOptions, 'out' | 'err'>,
): number {
  const faults = new Map<string, string>()
  for (const [name, goal] of goals) {
    const object = objects.get(name)
    const mode = object === undefined ? 'gone' : modeAt(object, nowMs)
    if (mode !== goal && mode !== 'Off') faults.set(name, `the recovery was ended by hand; the degrade mode is ${mode}`)
  }
  if (goals.size === 0) out('no recovery is under way\n')
  else out(`${goals.size - faults.size} of ${goals.size} recoveries complete\n`)
  for (const line of faultLines(faults)) err(`error: ${line}\n`)
  return faults.size > 0 ? 1 : 0
}
