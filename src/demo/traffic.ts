// Background traffic of the demo: kubelets that renew their leases, controllers, people, a watcher and one client that
// sends too many requests; some twenty-five requests per second, all through the gateway. Refusals are only counted.

import { type ClientHttp2Session, connect } from 'node:http2'
import { metaMicroTime } from '../kit/core/text/meta-time.ts'

interface TrafficOptions {
  /** `https://127.0.0.1:8443`. */
  readonly origin: string
  /** PEM of the CA of the gateway's certificate. */
  readonly ca: string
  readonly clusters: readonly TrafficCluster[]
}

interface TrafficCluster {
  /** Reached under `/clusters/NAME`. */
  readonly name: string
  /** Nodes whose leases to renew; empty if something else does. */
  readonly nodes: readonly string[]
}

export interface DemoTraffic {
  /** Responses so far, by status code; 0 = no response. */
  readonly answers: ReadonlyMap<number, number>
  stop(): void
}

/** Bearer tokens accepted by the demo's clusters, and their users. */
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

export function startTraffic(options: TrafficOptions): DemoTraffic {
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

/** A client that repeats the same request. */
interface Actor {
  readonly token: string
  readonly path: string
  readonly everyMs: number
  /** The body of a merge patch; absent = GET. */
  readonly patch?: () => string
}

const SHOP_PODS = '/api/v1/namespaces/shop/pods'

const ACTORS: readonly Actor[] = [
  // Any age will do, as for the first list of an informer: prod answers it from its read cache.
  { token: DEMO_TOKENS['system:kube-controller-manager'], path: `${SHOP_PODS}?resourceVersion=0`, everyMs: 500 },
  {
    token: DEMO_TOKENS['system:kube-controller-manager'],
    path: '/apis/apps/v1/deployments?resourceVersion=0',
    everyMs: 1000,
  },
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

// A client of the demo's background traffic: one user, one HTTP/2 connection; responses are only counted.
interface TrafficTarget {
  /** `https://127.0.0.1:8443`. */
  readonly origin: string
  /** PEM of the CA of the gateway's certificate. */
  readonly ca: string
}

const REWATCH_MS = 1000
const OK = 200

/** One HTTP/2 connection as one user, reopened when it ends. */
class TrafficClient {
  readonly #options: TrafficTarget
  readonly #token: string
  readonly #onAnswer: (status: number) => void
  #session: ClientHttp2Session | undefined
  #stopped = false

  constructor(options: TrafficTarget, token: string, onAnswer: (status: number) => void) {
    this.#options = options
    this.#token = token
    this.#onAnswer = onAnswer
  }

  /** A GET, or a merge patch if there is a body. */
  send(path: string, patch?: string): void {
    this.#request(path, patch, () => undefined)
  }

  /** Watches `path` until stopped. */
  watch(path: string): void {
    if (this.#stopped) return
    this.#request(path, undefined, () => setTimeout(() => this.watch(path), REWATCH_MS).unref())
  }

  stop(): void {
    this.#stopped = true
    this.#session?.destroy()
  }

  #request(path: string, patch: string | undefined, onEnd: () => void): void {
    if (this.#stopped) return
    const stream = this.#connected().request(
      {
        ':method': patch === undefined ? 'GET' : 'PATCH',
        ':path': path,
        authorization: `Bearer ${this.#token}`,
        accept: 'application/json',
        'user-agent': `portcullis-demo/${this.#token}`,
        ...(patch === undefined ? {} : { 'content-type': 'application/merge-patch+json' }),
      },
      { endStream: patch === undefined },
    )
    let status = 0
    stream.on('response', (headers) => {
      status = headers[':status'] ?? 0
      // A watch that has begun may go on for a minute: count it now.
      if (status === OK) this.#onAnswer(status)
    })
    stream.on('error', () => undefined)
    stream.on('close', () => {
      if (status !== OK && !this.#stopped) this.#onAnswer(status)
      onEnd()
    })
    stream.resume()
    if (patch !== undefined) stream.end(patch)
  }

  #connected(): ClientHttp2Session {
    const known = this.#session
    if (known !== undefined && !known.closed && !known.destroyed) return known
    const session = connect(this.#options.origin, { ca: this.#options.ca })
    // The streams report it.
    session.on('error', () => undefined)
    session.on('goaway', () => session.close())
    this.#session = session
    return session
  }
}
