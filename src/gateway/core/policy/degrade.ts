// The degrade switch: what each mode admits during an incident. Authentication comes first, so an unverified name gets no caller past it.

import type { UserInfo } from '../../../kube/api/user.ts'
import { DEGRADE_MODES, type DegradeMode, degradeEffect } from '../../api/upstream-cluster/degrade-modes.ts'
import type { CompiledDegrade } from '../cluster/compiled-cluster.ts'
import { isWatch } from '../request/long-running.ts'
import type { RequestInfo } from '../request/request-info.ts'
import { isRemoval } from './disruption.ts'
import { ruleMatches } from './match-rule.ts'

const GROUP_NODES = 'system:nodes'
const NODE_USER = 'system:node:'
const NODE_LEASE_NAMESPACE = 'kube-node-lease'

/** The mode in force: Off from `expiresAt` on. `nowMs`: milliseconds since the epoch. */
export function effectiveMode(degrade: CompiledDegrade, nowMs: number): DegradeMode {
  return degrade.expiresAtMs !== 0 && nowMs >= degrade.expiresAtMs ? 'Off' : degrade.mode
}

/**
 * Decides by the head alone. `exempt`: admitted by spec.degrade.exempt. Whether `degrade.shadow` only warns is up to the caller.
 * @param isUpgrade the client wants to upgrade to another protocol
 */
export function checkDegrade(
  degrade: CompiledDegrade,
  info: RequestInfo,
  user: UserInfo,
  userAgent: string,
  nowMs: number,
  isUpgrade = false,
): 'pass' | 'exempt' | 'refuse' {
  const mode = effectiveMode(degrade, nowMs)
  if (mode === 'Off') return 'pass'
  if (isExempt(degrade, info, user, userAgent)) return 'exempt'
  if (isUpgrade && !carriesEvents(info) && !degrade.guardsDisruption) return 'refuse'
  return isAllowed(mode, info, user) ? 'pass' : 'refuse'
}

/**
 * Traffic on an upgraded connection is invisible and may change anything: a virtual machine's console is opened with a GET, as exec is.
 * Only a watch carries nothing but events.
 */
function carriesEvents(info: RequestInfo): boolean {
  return isWatch(info) && info.subresource === ''
}

/** Whether spec.degrade.exempt admits it in any mode. */
export function isExempt({ exempt }: CompiledDegrade, info: RequestInfo, user: UserInfo, userAgent: string): boolean {
  for (const rule of exempt) if (ruleMatches(rule, info, user, userAgent)) return true
  return false
}

/**
 * A kubelet's report about its own node: the Lease, and the Node's status. kube-apiserver refuses it other nodes' objects
 * (plugin/pkg/admission/noderestriction).
 */
export function isNodeHeartbeat(info: RequestInfo, { name, groups }: UserInfo): boolean {
  const { resource, apiGroup, subresource } = info
  const lease = resource === 'leases' && apiGroup === 'coordination.k8s.io' && info.namespace === NODE_LEASE_NAMESPACE
  const status = resource === 'nodes' && apiGroup === '' && subresource === 'status'
  if (!lease && !status) return false
  if (info.name !== '' && name !== `${NODE_USER}${info.name}`) return false
  switch (info.verb) {
    case 'get':
    case 'create':
    case 'update':
    case 'patch':
      return name.startsWith(NODE_USER) && groups.includes(GROUP_NODES)
    default:
      return false
  }
}

type Rule = (info: RequestInfo, user: UserInfo) => boolean

/** What each mode admits beyond the stricter ones. */
const ADDED: Readonly<Record<DegradeMode, Rule>> = {
  // Limited refuses by rate only: neither mode refuses any request permanently.
  Off: () => true,
  Limited: () => true,
  NoDisruption: (info, user) => !isRemoval(info, user),
  ReadOnly: isRead,
  HeartbeatsOnly: (info, user) =>
    info.isResourceRequest && (isHeartbeat(info) || isReview(info) || isNodeReadByNode(info, user)),
  Freeze: isHealthCheck,
}

/** The modes form a ladder: on the way back from an incident, what passes already keeps passing. */
const RULES: ReadonlyMap<DegradeMode, readonly Rule[]> = new Map(
  DEGRADE_MODES.map((mode, i) => [mode, DEGRADE_MODES.slice(i).map((atLeastAsStrict) => ADDED[atLeastAsStrict])]),
)

function isAllowed(mode: DegradeMode, info: RequestInfo, user: UserInfo): boolean {
  for (const rule of RULES.get(mode) ?? []) if (rule(info, user)) return true
  return false
}

/** Load balancers and probes must see a frozen cluster as alive. */
function isHealthCheck(info: RequestInfo): boolean {
  if (info.isResourceRequest || !isReadMethod(info.verb)) return false
  const { path } = info
  return (
    isAtOrBelow(path, '/readyz') ||
    isAtOrBelow(path, '/livez') ||
    isAtOrBelow(path, '/healthz') ||
    path === '/version' ||
    path === '/version/'
  )
}

function isAtOrBelow(path: string, root: string): boolean {
  return path.startsWith(root) && (path.length === root.length || path.charCodeAt(root.length) === 0x2f)
}

/** Verbs of non-resource requests: methods in lower case. */
function isReadMethod(verb: string): boolean {
  return verb === 'get' || verb === 'head' || verb === 'options'
}

function isRead(info: RequestInfo): boolean {
  if (!info.isResourceRequest) return isReadMethod(info.verb)
  switch (info.subresource) {
    // These carry commands that change things, and a WebSocket opens them with a GET.
    case 'exec':
    case 'attach':
    case 'portforward':
    case 'proxy':
      return false
    default:
  }
  // '' is OPTIONS and every method unknown to Kubernetes; it answers both without side effects.
  return info.verb === 'get' || info.verb === 'list' || info.verb === 'watch' || info.verb === ''
}

/** Queries sent as POST that store nothing. Without them no client can be authenticated or authorised. */
function isReview(info: RequestInfo): boolean {
  if (info.verb !== 'create' || info.subresource !== '') return false
  switch (info.resource) {
    case 'tokenreviews':
    case 'selfsubjectreviews':
      return info.apiGroup === 'authentication.k8s.io'
    case 'subjectaccessreviews':
    case 'localsubjectaccessreviews':
    case 'selfsubjectaccessreviews':
    case 'selfsubjectrulesreviews':
      return info.apiGroup === 'authorization.k8s.io'
    default:
      return false
  }
}

/**
 * What keeps a running kubelet Ready: its Lease, the status of its Node and Pods, and its events. Nothing else: whatever more an incident
 * needs goes into spec.degrade.exempt.
 */
function isHeartbeat(info: RequestInfo): boolean {
  switch (info.resource) {
    case 'leases':
      return (
        info.apiGroup === 'coordination.k8s.io' && info.namespace === NODE_LEASE_NAMESPACE && isLeaseVerb(info.verb)
      )
    case 'nodes':
    case 'pods':
      return info.apiGroup === '' && info.subresource === 'status' && (info.verb === 'patch' || info.verb === 'update')
    case 'events':
      return (
        (info.apiGroup === '' || info.apiGroup === 'events.k8s.io') &&
        (info.verb === 'create' || info.verb === 'patch' || info.verb === 'update')
      )
    default:
      return false
  }
}

function isLeaseVerb(verb: string): boolean {
  switch (verb) {
    case 'get':
    case 'list':
    case 'watch':
    case 'create':
    case 'update':
    case 'patch':
      return true
    default:
      return false
  }
}

/**
 * A kubelet reads its Node before it patches the status. It reads its CSINode too: a restarted kubelet exits if it can't
 * (pkg/volume/csi/csi_plugin.go, initializeCSINode). Creating either is a node joining, not a heartbeat.
 */
function isNodeReadByNode(info: RequestInfo, user: UserInfo): boolean {
  if (info.subresource !== '' || !user.groups.includes(GROUP_NODES)) return false
  if (info.resource === 'nodes') {
    return info.apiGroup === '' && (info.verb === 'get' || info.verb === 'list' || info.verb === 'watch')
  }
  return info.resource === 'csinodes' && info.apiGroup === 'storage.k8s.io' && info.verb === 'get'
}

/** The message for a refused client: what is going on, why, and until when. */
export function degradeMessage(clusterName: string, degrade: CompiledDegrade, mode: DegradeMode): string {
  const reason = degrade.reason === '' ? 'no reason given' : degrade.reason
  const expiry = degrade.expiresAtMs === 0 ? 'no expiry is set' : `until ${degrade.expiresAt}`
  return `cluster "${clusterName}" is in degrade mode ${mode} (${degradeEffect(mode)}), ${expiry}: ${reason}`
}
