// Checks before the degrade switch is thrown: whether pods would be evicted, or kubelets or the command itself cut off.

import { metadataOf } from '../../cli/client/control-plane.ts'
import { federationOf } from '../../cli/client/federated-members.ts'
import type { ClientsSeen, UpstreamClusterStatus } from '../../gateway/api/upstream-cluster/status.ts'
import type { UpstreamCluster } from '../../gateway/api/upstream-cluster/upstream-cluster.ts'
import { buildClusterIndex } from '../../gateway/core/cluster/cluster-index.ts'
import { compileCluster } from '../../gateway/core/cluster/compile-cluster.ts'
import { compileDegrade } from '../../gateway/core/cluster/compile-settings.ts'
import type { CompiledCluster, CompiledDegrade } from '../../gateway/core/cluster/compiled-cluster.ts'
import { lookupCluster } from '../../gateway/core/cluster/lookup-cluster.ts'
import { assumeUser } from '../../gateway/core/identity/assume-user.ts'
import { checkDegrade } from '../../gateway/core/policy/degrade.ts'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { recordOf, textOf } from '../../kit/api/json/object-shape.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { UserInfo } from '../../kube/api/user.ts'
import type { SwitchChange } from './change.ts'
import { degradeOf } from './state.ts'

const RECENT_MS = 10 * 60_000
const HEARTBEAT = ['PUT', '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/any'] as const
const EVICTION = ['DELETE', '/api/v1/namespaces/any/pods/any'] as const
const KUBELET: UserInfo = assumeUser('system:node:any', ['system:nodes'])
/** Deletes pods of nodes without heartbeats: with its own service accounts, and without. */
const CONTROLLERS: readonly UserInfo[] = [
  'system:kube-controller-manager',
  'system:serviceaccount:kube-system:node-controller',
].map((name) => assumeUser(name, undefined))

/** Only used to create one: nothing is stored. */
const SELF_REVIEWS: ResourceKind = {
  ...LEASES,
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
}

/** The user that the API server sees as the caller; undefined = it doesn't say, like all before Kubernetes 1.28. */
export async function whoAmI(client: ObjectClient): Promise<UserInfo | undefined> {
  const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview', metadata: {} }
  const answer = await client.create(SELF_REVIEWS, asked).catch(() => undefined)
  const user = recordOf(recordOf(answer?.['status'])['userInfo'])
  const name = textOf(user['username'])
  if (name === '') return undefined
  const groups = Array.isArray(user['groups']) ? user['groups'].map(String) : []
  return { name, uid: '', groups, extra: {} }
}

export interface GuardedSwitch {
  /** Its current state. */
  readonly object: JsonObject
  readonly change: SwitchChange
  readonly nowMs: number
  /** URL of the API server in which this command changes it; '' = unknown. */
  readonly server: string
  /** The user that this server sees as the caller. Called only if the command itself goes through the gateway. */
  operator(): Promise<UserInfo | undefined>
}

/**
 * Checks before the switch is thrown: which heartbeats would stop, which controllers evict pods of nodes without them, and whether
 * the mode could still be lifted. `--force` overrides them. Returns objections as sentences; none = it is safe.
 */
export async function guardRails(guarded: GuardedSwitch): Promise<readonly string[]> {
  const { object, change } = guarded
  // In shadow mode nothing is refused.
  if (change.mode === 'Off' || change.shadow === true) return []
  const { expiresAt: _, ...given } = degradeOf(object)
  const degrade = compileDegrade({ ...given, mode: change.mode, shadow: false }, false)
  const lane = await laneFault(guarded, degrade)
  return [...heartbeatFaults(guarded, degrade), ...(lane === undefined ? [] : [lane])]
}

function heartbeatFaults({ object, change: { mode }, nowMs }: GuardedSwitch, degrade: CompiledDegrade): string[] {
  // A cluster that is read from its members has no nodes.
  if (federationOf(object) !== undefined || passes(degrade, HEARTBEAT, KUBELET)) return []
  const found: string[] = []
  const controllers = seenText(object, 'controllerManager', nowMs)
  if (controllers !== '') {
    found.push(
      `${mode} stops heartbeats, and kube-controller-manager ${controllers}: it bypasses the gateway, and would evict the pods of all nodes that become NotReady`,
    )
  } else if (CONTROLLERS.some((user) => passes(degrade, EVICTION, user))) {
    found.push(
      `${mode} stops heartbeats, and spec.degrade.exempt lets kube-controller-manager delete pods: it would evict the pods of all nodes that become NotReady`,
    )
  }
  if (seenText(object, 'kubelets', nowMs) === '') {
    found.push(
      `${mode} cuts off kubelets, which come through this gateway: their nodes would become NotReady; HeartbeatsOnly keeps them Ready`,
    )
  }
  return found
}

/** '' = it came through a replica lately; otherwise since when it hasn't. */
function seenText(object: JsonObject, client: keyof ClientsSeen, nowMs: number): string {
  const { gateways = [] } = (object['status'] as UpstreamClusterStatus | undefined) ?? {}
  const times = gateways.map(({ lastSeen }) => Date.parse(lastSeen?.[client] ?? '')).filter((ms) => !Number.isNaN(ms))
  const lastMs = Math.max(...times)
  if (times.length === 0) return 'has never come through the gateway'
  return nowMs - lastMs <= RECENT_MS
    ? ''
    : `has not come through the gateway for ${Math.floor((nowMs - lastMs) / 60_000)} minutes`
}

/** If the command goes through the gateway to the cluster itself, it must still be allowed later. */
async function laneFault(
  { object, change: { mode }, server, operator }: GuardedSwitch,
  degrade: CompiledDegrade,
): Promise<string | undefined> {
  const { name } = metadataOf(object)
  if (!comesThrough(object, server)) return undefined
  const lift = ['PATCH', `/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters/${name}`] as const
  const user = await operator()
  if (user !== undefined && passes(degrade, lift, user)) return undefined
  const who = user === undefined ? 'you' : `user "${user.name}"`
  return `${mode} cuts off ${who}: this command itself comes through the gateway to ${name} (${server}), and could not lift the mode again; name ${who} in spec.degrade.exempt`
}

/** By name, address or path; a cluster addressed by none of these might be the default one. */
function comesThrough(object: JsonObject, server: string): boolean {
  if (!URL.canParse(server)) return false
  const { host, hostname, port, pathname } = new URL(server)
  const compiled = compiledOf(object)
  if (compiled === undefined) return false
  const localPort = port === '' ? 443 : Number(port)
  const localAddress = hostname.replace(/^\[|\]$/g, '')
  const found = lookupCluster(buildClusterIndex([compiled]), {
    authority: host,
    target: pathname,
    localAddress,
    localPort,
  })
  return !('unknown' in found) && found.via !== 'default'
}

/** undefined = it is invalid, and so serves no request. */
function compiledOf(object: JsonObject): CompiledCluster | undefined {
  try {
    return compileCluster({ object: object as JsonObject & UpstreamCluster, revision: '' })
  } catch {
    return undefined
  }
}

function passes(degrade: CompiledDegrade, [method, target]: readonly [string, string], user: UserInfo): boolean {
  const info = parseRequestInfo(method, target)
  return !('failure' in info) && checkDegrade(degrade, info, user, '', 0) !== 'refuse'
}
