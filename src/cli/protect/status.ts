// `portcullis protect status`: PodProtectors with their numbers by cell, and which of them are below their minimum.

import { DEFAULT_COUNTER } from '../../api/pod-protector/names.ts'
import type { CellStatus, PodProtector } from '../../api/pod-protector/pod-protector.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { skewText } from '../../core/protection/clocks/cell-clock.ts'
import { formatDuration } from '../../core/text/duration.ts'
import type { LiveProtector } from '../../state/protectors.ts'
import { type ControlPlaneOptions, withControlPlane } from '../client/control-plane.ts'
import { textTable } from '../client/text-table.ts'
import { type CellFault, cellFaults, generatorFaults } from './cells.ts'
import { ageText, listProtectors } from './objects.ts'

export interface ProtectStatusOptions extends ControlPlaneOptions {
  /** Only this one. */
  readonly name?: string
  /** Default `default`. */
  readonly namespace?: string
  readonly allNamespaces: boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const HEAD = ['NAMESPACE', 'NAME', 'REQUIRED', 'AGGREGATED', 'ESTIMATED', 'BEING DELETED', 'LAG', 'STATE', 'CELLS']

/**
 * Resolves with the exit code: 1 when one has fewer pods than it requires, a cell is no longer counted, no PodProtectors are generated,
 * or nothing is found.
 */
export function protectStatus(options: ProtectStatusOptions): Promise<number> {
  const { name, allNamespaces, now, out, err } = options
  return withControlPlane({ ...options, needs: 'get and list of podprotectors' }, async (client) => {
    if (allNamespaces && name !== undefined) {
      throw new UserError('a name and --all-namespaces are both given', 'give -n NAMESPACE with the name')
    }
    if (allNamespaces && options.namespace !== undefined) {
      throw new UserError('--namespace and --all-namespaces are both given', 'give one of the two')
    }
    const namespace = allNamespaces ? '' : (options.namespace ?? 'default')
    const all = [...(await listProtectors(client, namespace)).values()]
    const chosen = all.filter(({ protector }) => name === undefined || protector.metadata.name === name)
    const ungenerated = await generatorFaults(client)
    for (const fault of ungenerated) err(`error: ${fault}\n`)
    if (chosen.length === 0) throw noneFound(namespace, name)
    chosen.sort((a, b) => (a.key < b.key ? -1 : 1))
    const faults = await cellFaults(client, now())
    const known = faults ?? new Map<string, CellFault>()
    out(textTable([HEAD, ...chosen.flatMap(({ protector }) => rowsOf(protector, known, now()))]))
    if (faults === undefined) {
      err('warning: no UpstreamClusters are visible here: it is not known whether each cell is still counted\n')
    }
    for (const { key, fault } of chosen) if (fault !== '') err(`warning: PodProtector ${key}: ${fault}\n`)
    const below = chosen.filter(isBelow)
    for (const { key, protector } of below) err(`error: PodProtector ${key} ${whyBelow(protector)}\n`)
    const broken = [...known].filter(([cell]) => chosen.some(({ protector }) => concerns(protector, cell)))
    for (const [cell, { since, message }] of broken) {
      err(`error: the pods of cell ${cell} are not counted${since === '' ? '' : ` since ${since}`}: ${message}\n`)
    }
    return below.length + broken.length + ungenerated.length > 0 ? 1 : 0
  })
}

function noneFound(namespace: string, name: string | undefined): UserError {
  const where = namespace === '' ? '' : ` in namespace ${namespace}`
  const what = name === undefined ? 'no PodProtector' : `no PodProtector ${JSON.stringify(name)}`
  return new UserError(
    `there is ${what}${where}`,
    namespace === '' ? 'is --kubeconfig the right one?' : 'see -n and -A',
  )
}

/** A protector that was not counted yet may have pods in any cell. */
function concerns({ status }: PodProtector, cell: string): boolean {
  const cells = status?.cells ?? []
  return cells.length === 0 || cells.some(({ cellID }) => cellID === cell)
}

/** One row for each cell; the totals are in the first. */
function rowsOf(protector: PodProtector, faults: ReadonlyMap<string, CellFault>, nowMs: number): string[][] {
  const { metadata, spec, status } = protector
  const { aggregatedAvailableReplicas = 0, maxLatencyMillis } = status?.summary ?? {}
  // In the object their order is that of the first counts.
  const cells = [...(status?.cells ?? [])].sort((a, b) => (a.cellID < b.cellID ? -1 : 1))
  const lag = maxLatencyMillis === undefined ? '-' : formatDuration(Math.max(0, maxLatencyMillis))
  const first = [
    metadata.namespace ?? '',
    metadata.name,
    String(spec.minAvailable),
    String(aggregatedAvailableReplicas),
    String(estimatedOf(protector)),
    String(cells.reduce((all, cell) => all + beingDeleted(cell), 0)),
    lag,
    cells.some(({ cellID }) => faults.has(cellID)) ? 'not known' : stateOf(protector),
  ]
  const nothing = first.map(() => '')
  if (cells.length === 0) return [[...first, 'none counted yet']]
  return cells.map((cell, at) => [...(at === 0 ? first : nothing), cellText(cell, faults.get(cell.cellID), nowMs)])
}

function cellText(cell: CellStatus, fault: CellFault | undefined, nowMs: number): string {
  const { cellID, aggregation, stale = false } = cell
  const deleted = beingDeleted(cell)
  const facts = [
    aggregation === undefined
      ? 'not counted yet'
      : `${aggregation.availableReplicas} available of ${aggregation.totalReplicas}`,
    ...(deleted > 0 ? [`${deleted} being deleted`] : []),
    ...(aggregation?.lastEventTime === undefined
      ? []
      : [`last event ${ageText(aggregation.lastEventTime, nowMs)} ago`]),
    ...(aggregation?.clockSkewMillis === undefined ? [] : [skewText(aggregation.clockSkewMillis)]),
    ...(fault === undefined ? [] : [`NOT COUNTED${fault.since === '' ? '' : ` for ${ageText(fault.since, nowMs)}`}`]),
    ...(stale ? ['stale: its pods do not count'] : []),
  ]
  return `${cellID}: ${facts.join(', ')}`
}

/** Admitted deletions that have not been seen to happen. */
function beingDeleted({ admissionHistory, stale = false }: CellStatus): number {
  if (stale) return 0
  return (admissionHistory?.buckets ?? []).reduce((all, { counter = DEFAULT_COUNTER }) => all + counter, 0)
}

function estimatedOf({ status }: PodProtector): number {
  return status?.summary.estimatedAvailableReplicas ?? 0
}

function stateOf(protector: PodProtector): string {
  const spare = estimatedOf(protector) - protector.spec.minAvailable
  if (spare < 0) return 'below'
  return spare === 0 ? 'at its limit' : `${spare} may go`
}

function isBelow({ protector }: LiveProtector): boolean {
  return estimatedOf(protector) < protector.spec.minAvailable
}

function whyBelow(protector: PodProtector): string {
  const { spec, status } = protector
  if (status === undefined || status.cells.length === 0) {
    return `requires ${spec.minAvailable} pods, and nobody has counted them; is a gateway with podProtection running?`
  }
  return `is below its minimum: ${spec.minAvailable} required, ${estimatedOf(protector)} estimated`
}
