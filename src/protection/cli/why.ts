// `portcullis protect why`: whether a pod may be deleted now, and by which numbers. Evaluated by the same code as in the gateway; writes
// nothing.

import { type ControlPlaneOptions, withControlPlane } from '../../cli/client/control-plane.ts'
import { type ClusterFederation, type MemberPlace, placeIn } from '../../cli/client/federated-members.ts'
import type { CompiledProtection } from '../../gateway/core/cluster/compiled-cluster.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../kit/api/validation/nearest-name.ts'
import { parseDuration } from '../../kit/core/text/duration.ts'
import { PODS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { compileSelector } from '../../kube/core/selectors/compile-selector.ts'
import { DEFAULT_PROTECTION_SETTINGS, type ProtectionSettings } from '../../process/api/protection-settings.ts'
import { POD_PROTECTORS } from '../api/pod-protector-kind.ts'
import type { PodFacts, ProtectionRequest, ProtectionVerdict } from '../api/protection.ts'
import { admitted, type Finding, findingsOf, verdictOf } from '../core/ledger/verdicts.ts'
import { freePass } from '../core/quota/quota.ts'
import type { LiveProtector } from '../state/protectors.ts'
import { ageText, listProtectedClusters, listProtectors, type ProtectedCluster } from './objects.ts'
import {
  type FederatedWay,
  type GivenWorker,
  isGiven,
  type ObjectReads,
  readByDefault,
  readGivenWorker,
  readPodFacts,
} from './pod.ts'

/** As in the gateway's settings; Go durations. */
export interface ProtectionFlags {
  readonly staleAfter?: string
  readonly clockSkew?: string
  readonly maxConcurrentLag?: number
}

export interface ProtectWhyOptions extends ControlPlaneOptions, GivenWorker, ProtectionFlags {
  readonly pod: string
  /** Default `default`. */
  readonly namespace?: string
  /** An UpstreamCluster with spec.podProtection, one that has such members, or the name of a cell. */
  readonly cluster: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** Resolves with the exit code: 1 if the deletion would be refused, or after an error. */
export function protectWhy(options: ProtectWhyOptions): Promise<number> {
  return withControlPlane(
    { ...options, needs: 'get and list of podprotectors and upstreamclusters', kind: POD_PROTECTORS },
    async (client) => {
      const { cluster, namespace = 'default', out, now } = options
      const settings = readSettings(options)
      const asked = cellNamed(await listProtectedClusters(client), cluster, namespace)
      if (asked.note !== '') options.err(`note: ${asked.note}\n`)
      const pod = await readPod(client, options, asked)
      const nowMs = now()
      out(`${podText(pod, namespace, nowMs)}\n`)
      const unasked = whyNotAsked(pod, asked)
      if (unasked !== '') {
        out(`a deletion now passes: ${unasked}\n`)
        return 0
      }
      const { cell, shadow } = asked
      const request: ProtectionRequest = {
        cell,
        cause: 'DeletePod',
        via: 'filter',
        pod,
        criterion: undefined,
        user: '',
        dryRun: true,
        shadow,
        timeoutMs: 0,
      }
      const table = await listProtectors(client, pod.namespace)
      const { lines, passes } = explainDeletion(request, table.matching(pod.namespace, pod.labels), settings, nowMs)
      for (const line of lines) out(`${line}\n`)
      return passes ? 0 : 1
    },
  )
}

export interface ProtectedCell {
  readonly cell: string
  /** The UpstreamCluster; '' = only the cell is known. */
  readonly upstream: string
  /** The namespace that was asked about, as the cell has it. */
  readonly namespace: string
  /** Federated clusters in which it can be read as well. */
  readonly through: readonly FederatedWay[]
  readonly shadow: boolean
  /** Why no protector is asked; '' = they are. */
  readonly unasked: string
  readonly protection: CompiledProtection | undefined
  readonly note: string
}

/**
 * The cell of an UpstreamCluster, or the name of a cell: one protected only by Podseidon's webhook has no UpstreamCluster. A federated cluster stands for the
 * member that the namespace names.
 * @throws {UserError} if it names none
 */
export function cellNamed(clusters: readonly ProtectedCluster[], name: string, namespace: string): ProtectedCell {
  const named = clusters.find((cluster) => cluster.name === name)
  if (named?.federation !== undefined) return cellOfMember(clusters, named.federation, namespace)
  const ofCell = clusters.find(({ protection }) => protection?.cell === name)
  const found = named?.protection === undefined ? (ofCell ?? named) : named
  if (found !== undefined) return cellOf(clusters, found, namespace)
  const known = clusters.filter(({ protection }) => protection !== undefined).map((cluster) => cluster.name)
  const meant = nearestName(name, known)
  const hint = meant === '' ? '' : `; did you mean ${meant}?`
  const others = known.length === 0 ? '' : ` (known: ${known.sort().join(', ')})`
  const note = `there is no UpstreamCluster ${name} with pod protection${others}, so ${name} is taken as the name of a cell${hint}`
  return {
    cell: name,
    upstream: '',
    namespace,
    through: [],
    shadow: false,
    unasked: '',
    protection: undefined,
    note,
  }
}

function cellOfMember(
  clusters: readonly ProtectedCluster[],
  federation: ClusterFederation,
  asked: string,
): ProtectedCell {
  const { member, namespace } = placeIn(federation, asked)
  const found = memberCluster(clusters, federation, member)
  const note = `namespace ${asked} of ${federation.name} is ${namespace} of ${found.name}`
  return { ...cellOf(clusters, found, namespace), note }
}

/** @throws {UserError} if there is none */
export function memberCluster(
  clusters: readonly ProtectedCluster[],
  { name }: ClusterFederation,
  member: MemberPlace['member'],
): ProtectedCluster {
  const found = clusters.find((one) => one.name === member.cluster)
  if (found !== undefined) return found
  const of = member.cluster === member.name ? '' : `, which is member ${member.name} of ${name}`
  throw new UserError(
    `there is no UpstreamCluster ${member.cluster}${of}`,
    `correct spec.members of ${name}, or add the UpstreamCluster`,
  )
}

function cellOf(
  clusters: readonly ProtectedCluster[],
  { name: upstream, protection }: ProtectedCluster,
  namespace: string,
): ProtectedCell {
  const through = clusters.flatMap(({ object, federation }): readonly FederatedWay[] => {
    const member = federation?.members.find(({ cluster }) => cluster === upstream)
    // With merged names another member may have an object of this name.
    return member === undefined || federation?.mode === 'merged' ? [] : [{ object, member: member.name }]
  })
  const { cell = upstream, shadow = false } = protection ?? {}
  const unasked = protection === undefined ? `UpstreamCluster ${upstream} has no spec.podProtection` : ''
  return { cell, upstream, namespace, through, shadow, unasked, protection, note: '' }
}

export function whyNotAsked(
  pod: Pick<PodFacts, 'namespace' | 'labels'>,
  { unasked, protection }: ProtectedCell,
): string {
  if (unasked !== '' || protection === undefined) return unasked
  const { excludedNamespaces, objectSelector } = protection
  if (excludedNamespaces.has(pod.namespace)) return `spec.podProtection excludes namespace ${pod.namespace}`
  if (objectSelector === undefined) return ''
  try {
    return compileSelector(objectSelector).matches(pod.labels) ? '' : 'spec.podProtection.objectSelector leaves it out'
  } catch (error) {
    const why = errorMessage(error)
    throw new UserError(`spec.podProtection.objectSelector cannot be read: ${why}`, 'correct the UpstreamCluster')
  }
}

async function readPod(
  objects: ObjectClient,
  options: ProtectWhyOptions,
  { upstream, namespace, through }: ProtectedCell,
): Promise<PodFacts> {
  const { pod: name, namespace: shown = 'default', kubeconfig = '', context } = options
  const what = `pod ${shown}/${name}`
  const read = (where: string, fix: string) => (client: ObjectReads) =>
    readPodFacts(client, { namespace, name }, new UserError(`there is no ${what}${where}`, fix))
  if (isGiven(options))
    return readGivenWorker(
      options,
      { needs: 'get of pods', kind: PODS, through },
      read('', 'is --pod-context that of the cluster?'),
    )
  const reading = { what, upstream, through, kubeconfig, ...(context !== undefined && { context }) }
  const here = read(` in ${upstream || 'that cluster'}`, 'see -n and --cluster')
  const { value, by } = await readByDefault(objects, reading, here)
  options.err(`note: the pod is read ${by}\n`)
  return value
}

export function readSettings({ staleAfter, clockSkew, maxConcurrentLag }: ProtectionFlags): ProtectionSettings {
  const { staleAfterMs, clockSkewMs } = DEFAULT_PROTECTION_SETTINGS
  return {
    ...DEFAULT_PROTECTION_SETTINGS,
    staleAfterMs: readDuration('--stale-after', staleAfter, staleAfterMs),
    clockSkewMs: readDuration('--clock-skew', clockSkew, clockSkewMs),
    ...(maxConcurrentLag !== undefined && { maxConcurrentLag }),
  }
}

function readDuration(flag: string, text: string | undefined, preset: number): number {
  if (text === undefined) return preset
  const ms = parseDuration(text)
  if (ms !== undefined && ms >= 0) return ms
  throw new UserError(
    `${flag} ${JSON.stringify(text)} is not a duration`,
    `write ${flag} 30s or 5m, as the gateway has it`,
  )
}

/** @param namespace as it was asked for */
function podText(pod: PodFacts, namespace: string, nowMs: number): string {
  const since = pod.readySinceMs === 0 ? '' : ` for ${ageText(new Date(pod.readySinceMs).toISOString(), nowMs)}`
  const facts = [
    pod.terminating ? 'being deleted' : pod.ready ? `ready${since}` : 'not ready',
    `evaluated as ${pod.criterion}`,
    ...(pod.forceDelete ? ['force-delete'] : []),
  ]
  return `pod ${namespace}/${pod.name}: ${facts.join(', ')}`
}

export interface DeletionExplanation {
  readonly lines: readonly string[]
  readonly passes: boolean
}

/**
 * Explains the evaluation of one deletion: each protector of the pod with its numbers, then the verdict.
 * @param protectors those that select the pod, sorted
 */
export function explainDeletion(
  request: ProtectionRequest,
  protectors: readonly LiveProtector[],
  settings: ProtectionSettings,
  nowMs: number,
): DeletionExplanation {
  const free = freePass(request)
  const findings = protectors.flatMap((live) => findingsOf([request], live, settings, nowMs))
  const lines = protectors.flatMap((live, at) => {
    const finding = findings[at]
    return finding === undefined ? [] : protectorLines(request, live, finding, free !== undefined)
  })
  const verdict = free === undefined || protectors.length === 0 ? verdictOf(request, findings) : admitted(free)
  const passes = verdict.admitted || verdict.overridden !== ''
  return { lines: [...lines, verdictText(verdict)], passes }
}

const WORDS: Readonly<Record<Finding['result'], string>> = {
  Ok: 'allows it',
  AlreadyHasBucket: 'allows it, as before',
  AlreadyUnhealthy: 'allows it: the pod does not meet its own criterion',
  Recorded: 'allows it: the pod has not been ready for minReadySeconds and is not counted',
  NoProtector: 'no longer exists',
  Denied: 'refuses: too few would be left',
  Retry: 'refuses for now: earlier deletions have not been observed yet',
}

function protectorLines(
  { cell }: ProtectionRequest,
  { key, protector, fault }: LiveProtector,
  { required, count, lag, result }: Finding,
  free: boolean,
): string[] {
  const says = free ? 'is not asked' : WORDS[result]
  const lines = [`PodProtector ${key}: ${required} required, ${count} counted, ${lag} being deleted: ${says}`]
  if (fault !== '') lines.push(`  ${fault}`)
  const status = protector.status?.cells.find(({ cellID }) => cellID === cell)
  if (status?.aggregation === undefined) lines.push(`  its pods in cell ${cell} have not been counted`)
  else if (status.stale === true) lines.push(`  cell ${cell} is silent: its pods do not count`)
  return lines
}

const PASSES: Readonly<Record<string, string>> = {
  Unmatched: 'no PodProtector selects the pod',
  AlreadyTerminating: 'the pod is already being deleted',
  AlreadyAdmitted: 'it was admitted before',
  AlreadyUnready: 'the pod is not ready, so its deletion costs no availability',
  StillUnavailable: 'the pod does not count as available yet',
  AlreadyUnhealthy: 'the pod does not meet its own criterion',
  AdmittedAll: 'enough pods are left',
}

function verdictText({ status, overridden, message, retryAfterSeconds }: ProtectionVerdict): string {
  const passes = PASSES[status]
  if (passes !== undefined) return `a deletion now passes: ${passes}`
  if (overridden === 'shadow')
    return `a deletion now passes, because protection is in dry run; it would be refused: ${message}`
  if (overridden !== '') return `a deletion now passes, because of ${overridden}; it would be refused: ${message}`
  const again = retryAfterSeconds > 0 ? '; it may pass in a moment' : ''
  return `a deletion now is refused: ${message}${again}`
}
