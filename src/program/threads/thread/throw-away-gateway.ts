// A gateway of the same code as the thread's own, and with nothing of its state: its one cluster has its server in this thread, its counts and logs
// are dropped, and it is thrown away.

import { X509Certificate } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { normalizeUpstreamCluster } from '../../../gateway/api/upstream-cluster/checks.ts'
import { compileCluster } from '../../../gateway/core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../../gateway/core/cluster/compiled-cluster.ts'
import { type Http2Session, serveHttp2 } from '../../../gateway/io/listener/http2-server.ts'
import { describePeer } from '../../../gateway/io/listener/peer.ts'
import type { ServingPair } from '../../../gateway/io/listener/tls-contexts.ts'
import { threadScheduler } from '../../../gateway/io/scheduling/thread-scheduler.ts'
import { clusterLabels, MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import type { Filters } from '../../../gateway/request/exchange/decision.ts'
import type { Gateway } from '../../../gateway/request/exchange/gateway.ts'
import { createRequestHandler } from '../../../gateway/request/serve.ts'
import { KnownTokens } from '../../../gateway/state/known-tokens.ts'
import { ALONE } from '../../../gateway/state/thread-place.ts'
import type { Peer, RequestHandler } from '../../../kit/api/stream.ts'
import { Answers } from '../../../kit/core/topics/questions.ts'
import { systemClock } from '../../../kit/io/world/clock.ts'
import { derOf } from '../../../pki/io/x509-chain.ts'
import type { CreateObservers } from '../../subjects/subject.ts'
import type { ThreadData } from '../messages.ts'
import { createGateway } from './create-gateway.ts'
import { ThreadFailures } from './failures.ts'
import { gatewayEvents } from './observers.ts'
import { ThreadOutbox } from './outbox.ts'
import { PairedGuard, PairedServer } from './paired-sockets.ts'
import { ThreadStreams } from './streams.ts'

/** Its cluster, the host of requests to it, and the user. No real one has this name (RFC 2606). */
export const WARM_UP = 'warm-up.invalid'

export interface ThrowAwayDeps {
  readonly data: ThreadData
  /** Those of the thread: they do nothing about a cluster that uses none of them. */
  readonly filters: Filters
  readonly observers: readonly CreateObservers[]
}

/** Addresses for documentation (RFC 5737). */
const ENDS = { localAddress: '192.0.2.1', localPort: 443, remoteAddress: '192.0.2.2', remotePort: 1, proxyAddress: '' }
/** Longer than it is there. */
const PATIENT_MS = 60_000
const nothing = (): void => undefined

export class ThrowAwayGateway {
  readonly #upstream: PairedServer
  readonly #gateway: Gateway
  readonly #metrics = new MetricsRecorder()
  readonly #ports: PairedServer[] = []
  readonly #sessions: Http2Session[] = []
  readonly #data: ThreadData

  constructor({ data, filters, observers }: ThrowAwayDeps) {
    this.#data = { ...data, place: ALONE }
    this.#upstream = new PairedServer(data.serving, (socket) => this.#serve(socket, [], answer))
    this.#gateway = this.#create(observers)
    this.#apply(clusterFor(data.serving))
    const handler = createRequestHandler(this.#gateway, filters)
    const certificate = derOf(new X509Certificate(data.serving.cert))
    for (const chain of [[certificate], []]) {
      this.#ports.push(new PairedServer(data.serving, (socket) => this.#serve(socket, chain, handler)))
    }
  }

  /** A port for clients with a certificate, and one for those without. */
  get ports(): readonly PairedServer[] {
    return this.#ports
  }

  #serve(socket: TLSSocket, chain: readonly Buffer[], handler: RequestHandler): void {
    const found = { alpnProtocol: 'h2', authorized: chain.length > 0 }
    const peer = describePeer(found, ENDS, WARM_UP, WARM_UP, chain, { drain: () => false, authenticated: nothing })
    this.#sessions.push(serveHttp2(socket, peer, this.#limits, this.#metrics.http2Clients, handler))
  }

  get #limits() {
    const { maxConcurrentStreams, maxHeaderBytes } = this.#data.config
    // Its only client sends at once: a deadline is missed only if the thread gets no CPU.
    return { maxConcurrentStreams, maxHeaderBytes, headerTimeoutMs: PATIENT_MS, idleTimeoutMs: PATIENT_MS }
  }

  #create(observers: readonly CreateObservers[]): Gateway {
    const [data, metrics] = [this.#data, this.#metrics]
    const outbox = new ThreadOutbox(nothing, new Int32Array(new SharedArrayBuffer(4)), data.config.logLevel)
    const thread = {
      ...{ metrics, clock: systemClock, thread: 0, threads: 1, identitiesSeen: () => [] },
      // Not traced: sampled spans are sent in intervals.
      config: { ...data.config, tracingOtlpEndpoint: '' },
      answers: new Answers(),
      streams: new ThreadStreams(nothing),
    }
    const others = observers.flatMap((create) => create(thread))
    return createGateway({
      ...{ data, metrics, outbox, clock: systemClock, tracer: undefined },
      failures: new ThreadFailures(nothing, KnownTokens.allocate(), systemClock.monotonic),
      guard: new PairedGuard(this.#upstream),
      events: gatewayEvents({ metrics, outbox, data }, others),
      readKeys: () => Promise.reject(new Error('there are no issuers')),
      endSessions: () => Promise.reject(new Error('there are no sessions')),
    })
  }

  #apply(cluster: CompiledCluster): void {
    const { clusters, upstreams } = this.#gateway
    const nowMs = systemClock.monotonic()
    clusters.change([cluster], [], nowMs)
    upstreams.update(cluster)
    this.#metrics.clustersChanged([clusterLabels(cluster)])
    const endpoints = clusters.get(WARM_UP)?.endpoints
    for (const { url } of cluster.endpoints) {
      const endpoint = endpoints?.byUrl(url)
      if (endpoint !== undefined) endpoints?.onProbe(endpoint, true, '', cluster.healthCheck, nowMs)
    }
  }

  /** Resolves when everything is closed, and nothing more happens. */
  async close(): Promise<void> {
    for (const session of this.#sessions) session.destroy()
    this.#gateway.upstreams.destroy()
    await Promise.all([this.#upstream, ...this.#ports].map((server) => server.close()))
    // Output of the turn in which they ended is still to be charged; what does not fit into a turn is left for the next one.
    do await setImmediate()
    while (threadScheduler.isScheduled)
  }
}

/** As clusters often are: certificates and tokens, some policies of which the last one matches, a limit. */
function clusterFor({ cert }: ServingPair): CompiledCluster {
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const other = { verbs: ['get'], apiGroups: ['apps'], resources: ['deployments'], users: ['other'] }
  const object = normalizeUpstreamCluster({
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: WARM_UP },
    spec: {
      servers: [{ endpoint: `https://${WARM_UP}` }],
      clientConfig: { bearerToken: base64(WARM_UP), insecure: true },
      healthCheck: { healthyThreshold: 1 },
      secureServing: { clientCAData: base64(cert) },
      flowControl: { flowControlSchemas: [{ name: 'all', tokenBucket: { qps: 1_000_000, burst: 1_000_000 } }] },
      dispatchPolicies: [
        { rules: [other] },
        { flowControlSchemaName: 'all', rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] },
      ],
    },
  })
  return compileCluster({ object, revision: '1' })
}

const ANSWER = Buffer.from(
  JSON.stringify({
    status: { authenticated: true, user: { username: WARM_UP, uid: '1', groups: ['one', 'two'], extra: {} } },
    rest: 'x'.repeat(1024),
  }),
)
const HEAD = [':status', '200', 'content-type', 'application/json', 'content-length', String(ANSWER.length)]

/** Its server: a TokenReview, whatever is asked. */
function answer(_peer: Peer, stream: Parameters<RequestHandler>[1]): ReturnType<RequestHandler> {
  stream.headers([...HEAD], false)
  stream.body(ANSWER, true)
  return { onHeaders: nothing, onBody: nothing, onTrailers: nothing, onDrained: nothing, onReset: nothing }
}
