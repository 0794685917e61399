// Checks before the switch is thrown: which heartbeats would stop, which controllers evict pods of nodes without them, and whether
// the mode could still be lifted. `--force` overrides them.

import { metadataOf } from '../../cli/client/control-plane.ts'
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
import type { UserInfo } from '../../kube/api/user.ts'
import type { Change } from './change.ts'
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

interface GuardedSwitch {
  /** Its current state. */
  readonly object: JsonObject
  readonly change: Change
  readonly nowMs: number
  /** URL of the API server in which this command changes it; '' = unknown. */
  readonly server: string
  /** The user that this server sees as the caller. Called only if the command itself goes through the gateway. */
  operator(): Promise<UserInfo | undefined>
}

/** Returns objections as sentences; none = it is safe. */
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
  if (passes(degrade, HEARTBEAT, KUBELET)) return []
  const found: string[] = []
  const controllers = seenText(object, 'controllerManager', nowMs)
  if (controllers !== '') {
    found.push(
      `${mode} stops heartbeats, and kube-controller-manager ${controllers}: it goes past the gateway, and evicts the pods of all nodes that become NotReady`,
    )
  } else if (CONTROLLERS.some((user) => passes(degrade, EVICTION, user))) {
    found.push(
      `${mode} stops heartbeats, and spec.degrade.exempt lets kube-controller-manager delete pods: it evicts those of all nodes that become NotReady`,
    )
  }
  if (seenText(object, 'kubelets', nowMs) === '') {
    found.push(
      `${mode} cuts off kubelets, which come through this gateway: nodes become NotReady; HeartbeatsOnly keeps them Ready`,
    )
  }
  return found
}

/** '' = it came through a replica lately; otherwise since when it hasn't. */
function seenText(object: JsonObject, client: keyof ClientsSeen, nowMs: number): string {
  const { gateways = [] } = (object['status'] as UpstreamClusterStatus | undefined) ?? {}
  const times = gateways.map(({ lastSeen }) => Date.parse(lastSeen?.[client] ?? '')).filter((ms) => !Number.isNaN(ms))
  const lastMs = Math.max(...times)
  if (times.length === 0) return 'has never come through it'
  return nowMs - lastMs <= RECENT_MS
    ? ''
    : `has not come through it for ${Math.floor((nowMs - lastMs) / 60_000)} minutes`
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
