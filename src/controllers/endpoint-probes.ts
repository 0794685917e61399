// Health checks: GET the probe path of every endpoint, at its interval, at once when an endpoint is new or a connection broke.
// Probes use the connections of the requests, so that what hangs for them hangs for the probe.

import type { Clock, Logger } from '../api/ports.ts'
import { KubeCallError, kubeCall } from '../io/kube-call.ts'
import type { Upstreams } from '../io/upstreams.ts'
import type { ClusterTable, LiveCluster } from '../state/clusters.ts'
import type { Endpoint } from '../state/endpoints.ts'

export interface ProbeEvents {
  probed(cluster: string, endpoint: string, healthy: boolean): void
}

export interface EndpointProbes {
  /** Follows the cluster table: new endpoints are probed at once, gone ones no more. */
  sync(): void
  /** Probes again soon: a connection to it broke, or what connects to it has changed. */
  hurry(cluster: string, endpoint: string): void
  /** Resolves when every endpoint has been probed once. */
  firstRound(): Promise<void>
  stop(): void
}

interface Prober {
  readonly cluster: string
  readonly url: string
  timer: NodeJS.Timeout | undefined
  running: boolean
  /** The next probe comes soon, or is to follow the running one soon. */
  hurried: boolean
  probed: boolean
  stopped: boolean
}

/** Probes of many gateways must not come together: each interval is varied by this much either way. */
const JITTER = 0.1
/** A broken connection is followed by a probe, but a storm of them by no storm. */
const HURRY_MS = 100

export function startEndpointProbes(
  clusters: ClusterTable,
  upstreams: Upstreams,
  clock: Clock,
  random: () => number,
  log: Logger,
  events: ProbeEvents,
): EndpointProbes {
  const probers = new Map<string, Prober>()
  let waiters: (() => void)[] = []

  const keyOf = (cluster: string, url: string): string => `${cluster} ${url}`

  const schedule = (prober: Prober, delayMs: number): void => {
    clearTimeout(prober.timer)
    if (prober.stopped) return
    prober.timer = setTimeout(() => void run(prober), delayMs)
    prober.timer.unref()
  }

  const run = async (prober: Prober): Promise<void> => {
    if (prober.running || prober.stopped) return
    const live = clusters.get(prober.cluster)
    const endpoint = live?.endpoints.byUrl(prober.url)
    if (live === undefined || endpoint === undefined) return
    prober.running = true
    prober.hurried = false
    const { intervalMs } = live.compiled.healthCheck
    try {
      const message = await probe(live, endpoint, upstreams)
      if (!prober.stopped) report(live, endpoint, message)
    } finally {
      prober.running = false
      prober.probed = true
      settle()
      schedule(prober, prober.hurried ? HURRY_MS : intervalMs * (1 - JITTER + 2 * JITTER * random()))
    }
  }

  const report = (live: LiveCluster, endpoint: Endpoint, message: string): void => {
    const before = endpoint.health.state
    live.endpoints.onProbe(endpoint, message === '', message, live.compiled.healthCheck, clock.monotonic())
    const after = endpoint.health.state
    events.probed(live.compiled.name, endpoint.url, after === 'healthy')
    if (before === after) return
    const fields = { cluster: live.compiled.name, endpoint: endpoint.url, from: before, to: after, reason: message }
    if (after === 'unhealthy') log.warn('endpoint health changed', fields)
    else log.info('endpoint health changed', fields)
  }

  const settle = (): void => {
    for (const prober of probers.values()) if (!prober.probed) return
    const done = waiters
    waiters = []
    for (const resolve of done) resolve()
  }

  const stopOne = (prober: Prober): void => {
    prober.stopped = true
    clearTimeout(prober.timer)
  }

  return {
    sync() {
      const wanted = new Set<string>()
      for (const live of clusters.values()) {
        for (const { url } of live.compiled.endpoints) {
          const key = keyOf(live.compiled.name, url)
          wanted.add(key)
          if (probers.has(key)) continue
          const prober: Prober = {
            cluster: live.compiled.name,
            url,
            timer: undefined,
            running: false,
            hurried: false,
            probed: false,
            stopped: false,
          }
          probers.set(key, prober)
          schedule(prober, 0)
        }
      }
      for (const [key, prober] of probers) {
        if (wanted.has(key)) continue
        stopOne(prober)
        probers.delete(key)
      }
      settle()
    },
    hurry(cluster, endpoint) {
      const prober = probers.get(keyOf(cluster, endpoint))
      // The first one is on its way already. A storm must not put the probe off again and again.
      if (prober === undefined || prober.hurried || !(prober.probed || prober.running)) return
      prober.hurried = true
      // What runs now may have seen the state of before.
      if (!prober.running) schedule(prober, HURRY_MS)
    },
    firstRound() {
      return new Promise((resolve) => {
        waiters.push(resolve)
        settle()
      })
    },
    stop() {
      for (const prober of probers.values()) stopOne(prober)
      probers.clear()
    },
  }
}

/** '' when healthy, else why not. */
async function probe(live: LiveCluster, endpoint: Endpoint, upstreams: Upstreams): Promise<string> {
  const cluster = live.compiled
  const upstream = upstreams.get(cluster.name, endpoint.url)
  if (upstream === undefined) return 'no connection'
  try {
    const answer = await kubeCall(upstream, {
      method: 'GET',
      path: cluster.healthCheck.path,
      authority: endpoint.url.slice(endpoint.url.indexOf('//') + 2),
      token: cluster.client.bearerToken,
      timeoutMs: cluster.healthCheck.timeoutMs,
    })
    return answer.status === 200 ? '' : `answered with ${answer.status}`
  } catch (error) {
    if (error instanceof KubeCallError) return error.message
    throw error
  }
}
