// A gateway of one thread inside the test process whose ledger of pod protection is the test's: what the request path does
// with verdicts, without what makes them.

import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../../../src/gateway/core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../../src/gateway/core/cluster/compiled-cluster.ts'
import { createMetrics } from '../../../src/gateway/metrics/metrics.ts'
import { ClusterTable } from '../../../src/gateway/state/clusters.ts'
import type { EndpointSet } from '../../../src/gateway/state/endpoints.ts'
import type { Logger } from '../../../src/kit/api/ports.ts'
import { systemClock } from '../../../src/kit/io/world/clock.ts'
import { loadConfig } from '../../../src/process/config/config.ts'
import { startInlineThread } from '../../../src/program/threads/pool/inline-thread.ts'
import { ThreadPool } from '../../../src/program/threads/pool/pool.ts'
import type {
  ProtectionGate,
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../../../src/protection/api/protection.ts'
import { ThreadDeletions } from '../../../src/protection/app/thread-ledger.ts'
import { PROTECTED_NAMESPACES } from '../../../src/protection/app/topics.ts'
import type { ScaleDownReport } from '../../../src/scaling/api/scale-down.ts'
import { POLICIES_IN_FORCE, SCALED_DOWN } from '../../../src/scaling/app/topics.ts'
import type { CompiledScaleDownPolicy } from '../../../src/scaling/core/victim-choice/policy.ts'
import { stubServing } from '../upstreams/stub-upstream.ts'
import { LOOPBACK_SERVERS } from './local-servers.ts'

export interface ScriptedGate extends ProtectionGate {
  /** All batches. */
  readonly asked: (readonly ProtectionRequest[])[]
  readonly released: Reservation[]
  /** All questions about scale-downs. */
  readonly scaleDowns: ScaleDownQuestion[]
  /** Default: no protector selects the pods. */
  answerScaleDown: (question: ScaleDownQuestion) => ScaleDownAnswer
  /** The verdict for each request; may be a promise. Default: admitted, with a reservation of its own. */
  judge: (request: ProtectionRequest) => ProtectionVerdict | Promise<ProtectionVerdict>
}

export interface GuardedGateway {
  readonly port: number
  readonly gate: ScriptedGate
  /** Lines of the access log and of the audit log. */
  readonly access: Readonly<Record<string, unknown>>[]
  readonly audit: {
    readonly auditID: string
    readonly stage: string
    readonly verb: string
    readonly responseStatus: { readonly reason: string; readonly message: string }
    readonly annotations: Readonly<Record<string, string>>
  }[]
  /** What came of scale-downs that have a policy. */
  readonly scaledDown: ScaleDownReport[]
  /** Takes the place of all. */
  scaleDownPolicies(policies: readonly CompiledScaleDownPolicy[]): void
  /** In which namespaces pods are protected; undefined = in any. */
  cover(namespaces: ReadonlySet<string> | undefined): void
  /** Disruptive requests to a cluster that were refused in the last minute. */
  refusedDisruptive(cluster: string): number
  /** Replaces all objects; resolves when they are in force. */
  apply(clusters: readonly UpstreamCluster[]): Promise<void>
  stop(): Promise<void>
}

export function admitted(request: ProtectionRequest): ProtectionVerdict {
  const { cell, pod, dryRun } = request
  const holds = [{ namespace: pod.namespace, name: 'ppr', uid: 'ppr-uid', startTime: `start of ${pod.name}` }]
  return {
    status: 'AdmittedAll',
    admitted: true,
    freePass: false,
    overridden: '',
    protector: '',
    message: '',
    causes: [],
    retryAfterSeconds: 0,
    reservation: dryRun ? undefined : { cell, uid: pod.uid, holds },
  }
}

export function refused(request: ProtectionRequest, verdict: Partial<ProtectionVerdict> = {}): ProtectionVerdict {
  const message = 'PodProtector default/ppr reports too few available replicas to admit pod deletion'
  return {
    ...admitted(request),
    status: 'Rejected',
    admitted: false,
    protector: 'default/ppr',
    message,
    causes: [{ reason: 'PodDeletionRefused', message, field: 'spec.minAvailable' }],
    reservation: undefined,
    ...verdict,
  }
}

/** @param withGate whether there is a ledger at all */
export async function startGuardedGateway(cluster: UpstreamCluster, withGate = true): Promise<GuardedGateway> {
  const gate: ScriptedGate = {
    asked: [],
    released: [],
    judge: admitted,
    covers: () => true,
    review: (requests) => {
      gate.asked.push(requests)
      return Promise.all(requests.map((request) => gate.judge(request)))
    },
    scaleDowns: [],
    answerScaleDown: () => ({ protectors: [], unknown: '' }),
    reviewScaleDown: (question) => {
      gate.scaleDowns.push(question)
      return Promise.resolve(gate.answerScaleDown(question))
    },
    release: (reservations) => void gate.released.push(...reservations),
  }
  const access: GuardedGateway['access'] = []
  const audit: GuardedGateway['audit'] = []
  const { pair } = stubServing()
  const clusters = new ClusterTable({ thread: 1, threads: 1, seed: [1, 2] })
  const silent = (): void => undefined
  const log: Logger = { debug: silent, info: silent, warn: silent, error: (message) => console.error(message) }
  const config = loadConfig({
    flags: { configDir: 'given', allowLocalServers: [...LOOPBACK_SERVERS] },
    env: {},
    readFile: () => '',
  })
  const pool = new ThreadPool({
    threads: 1,
    start: startInlineThread,
    data: {
      config,
      serving: { cert: pair.certPem, key: pair.keyPem },
      accessLog: true,
      auditLog: true,
      auditPolicy: undefined,
    },
    seed: [1, 2],
    clusters,
    metrics: createMetrics(),
    clock: systemClock,
    log,
    access: lineWriter(access),
    audit: lineWriter(audit),
    onBroken: silent,
  })
  const { topics, questions } = pool
  new ThreadDeletions({ gate: () => (withGate ? gate : undefined), topics, questions, log }).start()
  const scaledDown: ScaleDownReport[] = []
  pool.topics.subscribe(SCALED_DOWN, (report) => scaledDown.push(report))
  pool.start()
  await pool.online()
  let revision = 0
  const apply = async (objects: readonly UpstreamCluster[]): Promise<void> => {
    revision++
    const changed = objects.map((object) => compileCluster({ object, revision: String(revision) }))
    const names = changed.map(({ name }) => name)
    const removed = [...clusters.names()].filter((name) => !names.includes(name))
    clusters.change(changed, removed, systemClock.monotonic())
    for (const { name, healthCheck } of changed) found(clusters.get(name)?.endpoints, healthCheck)
    await pool.publish(names, removed)
  }
  await apply([cluster])
  const [port = 0] = await pool.listen([{ host: '127.0.0.1', port: 0 }])
  return {
    port,
    gate,
    access,
    audit,
    apply,
    scaledDown,
    scaleDownPolicies: (policies) => pool.topics.publish(POLICIES_IN_FORCE, policies),
    refusedDisruptive: (name) => clusters.get(name)?.incident.refusedInLastMinute(systemClock.now()) ?? 0,
    cover: (namespaces) => topics.publish(PROTECTED_NAMESPACES, namespaces),
    stop: () => pool.end(),
  }
}

function lineWriter(into: unknown[]) {
  return {
    write: (line: string): void => void into.push(JSON.parse(line)),
    dropped: () => 0,
    flush: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
}

/** There are no health checks: all servers are taken to be healthy. */
function found(endpoints: EndpointSet | undefined, healthCheck: CompiledCluster['healthCheck']): void {
  const atOnce = { ...healthCheck, healthyThreshold: 1 }
  for (const endpoint of endpoints?.all ?? []) endpoints?.onProbe(endpoint, true, '', atOnce, systemClock.monotonic())
}
