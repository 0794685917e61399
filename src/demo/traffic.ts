// Background traffic of the demo: kubelets that renew their leases, controllers, people, a watcher and one client that
// asks too much; some twenty-five requests a second, all through the gateway. What is refused is only counted.

import { metaMicroTime } from '../core/text/meta-time.ts'
import { TrafficClient } from './cluster/traffic-client.ts'

export interface TrafficOptions {
  /** `https://127.0.0.1:8443`. */
  readonly origin: string
  /** PEM of the CA of the gateway's certificate. */
  readonly ca: string
  readonly clusters: readonly TrafficCluster[]
}

export interface TrafficCluster {
  /** Reached under `/clusters/NAME`. */
  readonly name: string
  /** Nodes whose leases are to be renewed; empty where something else does it. */
  readonly nodes: readonly string[]
}

export interface Traffic {
  /** Answers so far, by status code; 0 = none came. */
  readonly answers: ReadonlyMap<number, number>
  stop(): void
}

/** Bearer tokens that the demo's clusters accept, and the users they stand for. */
export const DEMO_TOKENS = {
  alice: 'demo-alice',
  bob: 'demo-bob',
  'ci-bot': 'demo-ci-bot',
  dashboard: 'demo-dashboard',
  'system:kube-controller-manager': 'demo-controller-manager',
} as const

export function nodeToken(node: string): string {
  return `demo-kubelet-${node}`
}

export function startTraffic(options: TrafficOptions): Traffic {
  const answers = new Map<number, number>()
  const clients: TrafficClient[] = []
  const timers: NodeJS.Timeout[] = []
  const clientFor = (token: string): TrafficClient => {
    const client = new TrafficClient(options, token, (status) => answers.set(status, (answers.get(status) ?? 0) + 1))
    clients.push(client)
    return client
  }
  for (const { name, nodes } of options.clusters) {
    for (const actor of [...nodes.map(kubelet), ...ACTORS]) {
      const client = clientFor(actor.token)
      const prefix = `/clusters/${name}`
      timers.push(setInterval(() => client.send(`${prefix}${actor.path}`, actor.patch?.()), actor.everyMs))
    }
    clientFor(DEMO_TOKENS.dashboard).watch(`/clusters/${name}/api/v1/namespaces/shop/pods?watch=true&timeoutSeconds=60`)
  }
  return {
    answers,
    stop() {
      for (const timer of timers) clearInterval(timer)
      for (const client of clients) client.stop()
    },
  }
}

/** Somebody who asks for the same thing again and again. */
interface Actor {
  readonly token: string
  readonly path: string
  readonly everyMs: number
  /** The body of a merge patch; absent = GET. */
  readonly patch?: () => string
}

const SHOP_PODS = '/api/v1/namespaces/shop/pods'

const ACTORS: readonly Actor[] = [
  { token: DEMO_TOKENS['system:kube-controller-manager'], path: SHOP_PODS, everyMs: 500 },
  { token: DEMO_TOKENS['system:kube-controller-manager'], path: '/apis/apps/v1/deployments', everyMs: 1000 },
  { token: DEMO_TOKENS.alice, path: SHOP_PODS, everyMs: 1500 },
  { token: DEMO_TOKENS.alice, path: '/apis/apps/v1/namespaces/shop/deployments/web', everyMs: 700 },
  { token: DEMO_TOKENS.bob, path: '/api/v1/namespaces/shop/configmaps', everyMs: 1000 },
  // More than the five lists of pods a second that prod allows.
  { token: DEMO_TOKENS['ci-bot'], path: SHOP_PODS, everyMs: 140 },
]

function kubelet(node: string): Actor {
  return {
    token: nodeToken(node),
    path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${node}`,
    everyMs: 2000,
    patch: () => JSON.stringify({ spec: { renewTime: metaMicroTime(Date.now()) } }),
  }
}
