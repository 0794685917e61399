// `portcullis protect status`: PodProtectors with their numbers by cell, and which of them are below their minimum.

import { type ControlPlaneOptions, metadataOf, withControlPlane } from '../../cli/client/control-plane.ts'
import { type ClusterFederation, namespaceShownIn } from '../../cli/client/federated-members.ts'
import type { UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import { skewText } from '../../gateway/core/clocks/cell-clock.ts'
import { compileProtection } from '../../gateway/core/cluster/compile-protection.ts'
import { conditionOf } from '../../gateway/core/status/cluster-status.ts'
import { REPLICA_LABEL_SELECTOR, REPLICA_NAMESPACES, readReplicaLease } from '../../gateway/core/status/gateways.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { formatDuration } from '../../kit/core/text/duration.ts'
import { textTable } from '../../kit/core/text/text-table.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import type { CellStatus, PodProtector } from '../api/pod-protector.ts'
import { POD_PROTECTORS } from '../api/pod-protector-kind.ts'
import { DEFAULT_COUNTER } from '../api/schema.ts'
import type { LiveProtector } from '../state/protectors.ts'
import { ageText, listProtectedClusters, listProtectors, type ProtectedCluster, podProtectionOf } from './objects.ts'
import { cellNamed, memberCluster } from './why.ts'

export interface ProtectStatusOptions extends ControlPlaneOptions {
  /** Only this one. */
  readonly name?: string
  /** Default `default`. */
  readonly namespace?: string
  readonly allNamespaces: boolean
  /** Only this UpstreamCluster, the members of this federated one, or the cell of this name. Default: all cells. */
  readonly cluster?: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

const HEAD = ['NAMESPACE', 'NAME', 'REQUIRED', 'AGGREGATED', 'ESTIMATED', 'BEING DELETED', 'LAG', 'STATE', 'CELLS']

/**
 * Resolves with the exit code: 1 if one has fewer pods than it requires, a cell is no longer counted, no PodProtectors are generated,
 * or nothing is found.
 */
export function protectStatus(options: ProtectStatusOptions): Promise<number> {
  const { name, allNamespaces, now, out, err } = options
  const asked = { ...options, needs: 'get and list of podprotectors', kind: POD_PROTECTORS }
  return withControlPlane(asked, async (client) => {
    if (allNamespaces && name !== undefined) {
      throw new UserError('a name and --all-namespaces are both given', 'give -n NAMESPACE with the name')
    }
    if (allNamespaces && options.namespace !== undefined) {
      throw new UserError('--namespace and --all-namespaces are both given', 'give one of the two')
    }
    const asked = allNamespaces ? '' : (options.namespace ?? 'default')
    const { namespace, views, notes } = await chosenView(client, options.cluster, asked)
    const all = [...(await listProtectors(client, namespace)).values()]
    const chosen = all.filter(({ protector }) => {
      if (name !== undefined && protector.metadata.name !== name) return false
      return views === undefined || views.some(({ cell }) => concerns(protector, cell))
    })
    const ungenerated = await generatorFaults(client)
    for (const fault of ungenerated) err(`error: ${fault}\n`)
    for (const note of notes) err(`note: ${note}\n`)
    if (chosen.length === 0) throw noneFound(asked, name)
    chosen.sort((a, b) => (a.key < b.key ? -1 : 1))
    const faults = await cellFaults(client, now())
    const known = faults ?? new Map<string, CellFault>()
    const rows = (views ?? [undefined]).flatMap((view) =>
      chosen.flatMap(({ protector }) =>
        view === undefined || concerns(protector, view.cell) ? rowsOf(protector, known, now(), view) : [],
      ),
    )
    out(textTable([HEAD, ...rows]))
    if (faults === undefined) {
      err('warning: no UpstreamClusters are visible here: it is not known whether each cell is still counted\n')
    }
    for (const { key, fault } of chosen) if (fault !== '') err(`warning: PodProtector ${key}: ${fault}\n`)
    const below = chosen.filter(isBelow)
    for (const { key, protector } of below) err(`error: PodProtector ${key} ${whyBelow(protector)}\n`)
    const broken = [...known].filter(([cell]) => {
      const isShown = views === undefined || views.some((view) => view.cell === cell)
      return isShown && chosen.some(({ protector }) => concerns(protector, cell))
    })
    for (const [cell, { since, message }] of broken) {
      err(`error: the pods of cell ${cell} are not counted${since === '' ? '' : ` since ${since}`}: ${message}\n`)
    }
    return below.length + broken.length + ungenerated.length > 0 ? 1 : 0
  })
}

/** What is shown of one cell. */
interface CellView {
  readonly cell: string
  /** What a namespace is called where the user looks. */
  shown(namespace: string): string
}

interface ChosenView {
  /** As the cells have it; '' = all. */
  readonly namespace: string
  /** undefined = all cells, together. */
  readonly views: readonly CellView[] | undefined
  /** Complete sentences without a full stop. */
  readonly notes: readonly string[]
}

/** @param namespace as asked for; '' = all @throws {UserError} if no pods are protected there */
async function chosenView(client: ObjectClient, name: string | undefined, namespace: string): Promise<ChosenView> {
  if (name === undefined) return { namespace, views: undefined, notes: [] }
  const clusters = await listProtectedClusters(client)
  const federation = clusters.find((cluster) => cluster.name === name)?.federation
  if (federation !== undefined && namespace === '') return ofAllMembers(clusters, federation)
  const { cell, unasked, note, ...own } = cellNamed(clusters, name, namespace)
  if (unasked !== '') throw new UserError(unasked, WITHOUT_CLUSTER)
  return {
    namespace: own.namespace,
    views: [{ cell, shown: (own) => namespace || own }],
    notes: note === '' ? [] : [note],
  }
}

function ofAllMembers(clusters: readonly ProtectedCluster[], federation: ClusterFederation): ChosenView {
  const views: CellView[] = []
  const notes: string[] = []
  for (const member of federation.members) {
    const { name, protection } = memberCluster(clusters, federation, member)
    if (protection === undefined) notes.push(`UpstreamCluster ${name} has no spec.podProtection`)
    else views.push({ cell: protection.cell, shown: (own) => namespaceShownIn(federation, member, own) })
  }
  if (views.length === 0) throw new UserError(notes.join(', '), WITHOUT_CLUSTER)
  return { namespace: '', views, notes }
}

const WITHOUT_CLUSTER = 'name a cluster whose pods are protected, or leave --cluster out'

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

/** One row per cell; the totals, over all cells, are in the first. @param view undefined = all cells */
function rowsOf(
  protector: PodProtector,
  faults: ReadonlyMap<string, CellFault>,
  nowMs: number,
  view: CellView | undefined,
): string[][] {
  const { metadata, spec, status } = protector
  const { aggregatedAvailableReplicas = 0, maxLatencyMillis } = status?.summary ?? {}
  // In the object they are in the order of the first counts.
  const cells = [...(status?.cells ?? [])].sort((a, b) => (a.cellID < b.cellID ? -1 : 1))
  const lag = maxLatencyMillis === undefined ? '-' : formatDuration(Math.max(0, maxLatencyMillis))
  const first = [
    view?.shown(metadata.namespace ?? '') ?? metadata.namespace ?? '',
    metadata.name,
    String(spec.minAvailable),
    String(aggregatedAvailableReplicas),
    String(estimatedOf(protector)),
    String(cells.reduce((all, cell) => all + beingDeleted(cell), 0)),
    lag,
    cells.some(({ cellID }) => faults.has(cellID)) ? 'not known' : stateOf(protector),
  ]
  const nothing = first.map(() => '')
  const shown = view === undefined ? cells : cells.filter(({ cellID }) => cellID === view.cell)
  if (shown.length === 0) return [[...first, 'none counted yet']]
  return shown.map((cell, at) => [...(at === 0 ? first : nothing), cellText(cell, faults.get(cell.cellID), nowMs)])
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

/** Admitted deletions not seen to have happened. */
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
    return `requires ${spec.minAvailable} pods, which have not been counted; is a gateway with podProtection running?`
  }
  return `is below its minimum: ${spec.minAvailable} required, ${estimatedOf(protector)} estimated`
}

export interface CellFault {
  /** RFC 3339; '' = unknown. */
  readonly since: string
  readonly message: string
}

/** A Lease older than this many durations belongs to a dead replica, whatever the clock skew. */
const DEAD_DURATIONS = 2

/** By cell; undefined = unknown, because the UpstreamClusters are in another API server. @param nowMs since the epoch */
export async function cellFaults(
  client: ObjectClient,
  nowMs: number,
): Promise<ReadonlyMap<string, CellFault> | undefined> {
  const objects = await listed(client)
  if (objects === undefined) return undefined
  const faults = new Map<string, CellFault>()
  const counted = new Set<string>()
  for (const object of objects) {
    const protection = podProtectionOf(object)
    if (protection === undefined) continue
    const { cell, aggregation } = compileProtection(protection, metadataOf(object).name)
    const verdict = aggregation.enabled ? verdictOf((object['status'] ?? {}) as UpstreamClusterStatus, cell) : undefined
    if (verdict === 'counted') counted.add(cell)
    else if (verdict !== undefined) faults.set(cell, verdict)
  }
  // Two clusters may share a cell: one that counts is enough.
  for (const cell of counted) faults.delete(cell)
  if (counted.size > 0 && !(await isAnyReplicaAlive(client, nowMs))) {
    for (const cell of counted) faults.set(cell, { since: '', message: 'no gateway renews its Lease' })
  }
  return faults
}

/** undefined = no gateway reports on it; older versions don't. */
function verdictOf(status: UpstreamClusterStatus, cell: string): CellFault | 'counted' | undefined {
  const condition = conditionOf(status, 'PodsProtected')
  if (condition === undefined) return undefined
  const entries = (status.gateways ?? []).flatMap(({ podProtection }) => podProtection ?? [])
  const ofCell = entries.filter((entry) => entry.cell === cell)
  if (ofCell.some(({ state }) => state === 'Counting')) return 'counted'
  const broken = ofCell.find(({ state }) => state === 'Broken')
  if (broken === undefined) return { since: condition.lastTransitionTime, message: condition.message }
  const { since, message = '' } = broken
  // The condition repeats the message, unless it has another one that explains it.
  return { since, message: condition.reason === 'Broken' ? message : `${message}; ${condition.message}` }
}

/** Why gateways generate no PodProtectors, each reason once. */
export async function generatorFaults(client: ObjectClient): Promise<readonly string[]> {
  const conditions = ((await listed(client)) ?? []).map(({ status }) =>
    conditionOf((status ?? {}) as UpstreamClusterStatus, 'PodsProtected'),
  )
  const faults = conditions.filter((one) => one?.reason === 'NotGenerated')
  return [...new Set(faults.map((one) => one?.message ?? ''))]
}

async function listed(client: ObjectClient): Promise<readonly JsonObject[] | undefined> {
  try {
    return (await client.list(UPSTREAM_CLUSTERS, '')).items
  } catch (error) {
    if (error instanceof StatusError && (error.code === 403 || error.code === 404)) return undefined
    throw error
  }
}

/** Also true if Leases may not be read. */
async function isAnyReplicaAlive(client: ObjectClient, nowMs: number): Promise<boolean> {
  try {
    for (const namespace of REPLICA_NAMESPACES) {
      for (const item of (await client.list(LEASES, namespace, REPLICA_LABEL_SELECTOR)).items) {
        const lease = readReplicaLease(item)
        if (lease !== undefined && nowMs - Date.parse(lease.renewTime) < lease.durationMs * DEAD_DURATIONS) return true
      }
    }
    return false
  } catch (error) {
    if (error instanceof StatusError && (error.code === 403 || error.code === 404)) return true
    throw error
  }
}
