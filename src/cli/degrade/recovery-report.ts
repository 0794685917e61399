// How far a recovery by steps is, as `portcullis degrade --status` shows it, once or until it is over.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { recordOf } from '../../api/kube/object-shape.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import { DEGRADE_MODES } from '../../api/upstream-cluster/degrade-modes.ts'
import type { RecoveryStatus, UpstreamClusterStatus } from '../../api/upstream-cluster/status.ts'
import { getCluster, metadataOf } from '../client/control-plane.ts'
import { textTable } from '../client/text-table.ts'
import type { DegradeOptions } from './options.ts'
import { degradeOf } from './state.ts'

const POLL_MS = 1_000

/** '' = there is none. */
export function recoveryReport(object: JsonObject): string {
  const { recovery } = degradeOf(object)
  if (recovery === undefined) return ''
  const seen = recoveryOf(object)
  if (seen === undefined) return 'recovery: the leader has not looked yet\n'
  const { step, since, startedFrom, holdingSince, checks, waitingFor } = seen
  const ladder: readonly string[] = DEGRADE_MODES
  const rung = ladder.length - ladder.indexOf(step)
  const head = `recovery: ${step} since ${since}, step ${rung} of ${ladder.length}, started from ${startedFrom}`
  const rows = checks.map(({ name, ok, message }) => [name, ok ? 'yes' : 'no', message])
  const table = rows.length === 0 ? '' : textTable([['CHECK', 'HOLDS', 'SEEN'], ...rows], '  ')
  const held = holdingSince === undefined ? '' : `  all hold since ${holdingSince}\n`
  return `${head}\n${table}${held}  waits for: ${waitingFor}\n`
}

function recoveryOf(object: JsonObject): RecoveryStatus | undefined {
  return (recordOf(object['status']) as UpstreamClusterStatus).degrade?.recovery
}

/** Prints the report whenever it has changed. The exit code: 0 when the mode is Off in the end. */
export async function watchRecovery(client: ObjectClient, cluster: string, options: DegradeOptions): Promise<number> {
  const { out, err, pollMs = POLL_MS } = options
  let shown: string | undefined
  for (;;) {
    const object = await getCluster(client, cluster)
    const report = recoveryReport(object)
    if (report === '') return ended(object, shown, out, err)
    if (report !== shown) out(report)
    shown = report
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

function ended(
  object: JsonObject,
  shown: string | undefined,
  out: DegradeOptions['out'],
  err: DegradeOptions['err'],
): number {
  const { mode = 'Off' } = degradeOf(object)
  const { name } = metadataOf(object)
  if (shown === undefined) out(`${name}: no recovery is under way\n`)
  else if (mode === 'Off') out(`${name}: recovery complete, the degrade mode is Off\n`)
  else err(`error: the recovery of ${name} was ended by hand; the degrade mode is ${mode}\n`)
  return shown === undefined || mode === 'Off' ? 0 : 1
}
