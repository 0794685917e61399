// The PodProtectors of a cell for the dashboard: those with the least room first.

import type { ProtectorRow, ProtectorRows } from '../../gateway/api/pod-protection-in-force.ts'
import type { LabelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import type { ProtectionSettings } from '../../process/api/protection-settings.ts'
import type { PodFacts } from '../api/protection.ts'
import { limitsOf } from '../core/history/cell-history.ts'
import { quotaState } from '../core/quota/quota.ts'
import type { LiveProtector } from '../state/protectors.ts'

type CountedRow = Omit<ProtectorRow, 'stuck'> & { readonly key: string; readonly selector: LabelSelector }

const MAX_ROWS = 100
const MAX_NAMES = 10
/** Limit per PodProtector. */
const MAX_PODS = 2000

/** @param select pods of the cell; undefined if another replica counts them */
export function protectorRows(
  cell: string,
  protectors: Iterable<LiveProtector>,
  settings: ProtectionSettings,
  nowMs: number,
  select: (namespace: string, selector: LabelSelector) => Iterable<PodFacts> | undefined,
): ProtectorRows {
  const here = [...protectors].filter(({ protector }) =>
    (protector.status?.cells ?? []).some(
      ({ cellID, aggregation }) => cellID === cell && (aggregation?.totalReplicas ?? 0) > 0,
    ),
  )
  const rows = here
    .map((live) => rowOf(live, settings, nowMs))
    .sort((a, b) => a.mayGo - b.mayGo || (a.key < b.key ? -1 : 1))
  const shown = rows.slice(0, MAX_ROWS).map(({ key: _, selector, ...row }) => {
    if (row.stuckCount === 0) return { ...row, stuck: [] }
    return { ...row, stuck: namesOf(select(row.namespace, selector) ?? []) }
  })
  return { rows: shown, omitted: rows.length - shown.length }
}

function rowOf({ key, protector, fault }: LiveProtector, settings: ProtectionSettings, nowMs: number): CountedRow {
  const { metadata, spec } = protector
  const { available, lagAvailable, reject, remaining } = quotaState(
    protector,
    limitsOf(protector, settings),
    nowMs * 1000,
  )
  const room = Math.max(0, available - lagAvailable - reject)
  const mayGo = remaining === undefined ? room : Math.min(room, remaining)
  return {
    key,
    selector: spec.selector,
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    minAvailable: spec.minAvailable,
    available,
    pending: lagAvailable,
    mayGo,
    stuckCount: mayGo === 0 ? available : 0,
    fault,
  }
}

function namesOf(pods: Iterable<PodFacts>): readonly string[] {
  const names: string[] = []
  let seen = 0
  for (const { name, ready, terminating } of pods) {
    if (++seen > MAX_PODS || names.length >= MAX_NAMES) break
    if (ready && !terminating) names.push(name)
  }
  return names
}
