// The components of a gateway in start order. They stop in reverse, after the gateway threads have drained.

import { setTimeout as sleep } from 'node:timers/promises'
import { advertisedAddress } from '../../admin/app/replicas/known-replicas.ts'
import { followWebhookKubeconfig } from '../../audit/app/outputs.ts'
import { followAuditPolicy } from '../../audit/app/policy-file.ts'
import { WEBHOOK_RESULTS } from '../../audit/io/webhook/audit-webhook.ts'
import { AUDIT_WEBHOOK_EVENTS, FLOW_INFLIGHT, LOG_LINES_DROPPED } from '../../gateway/metrics/descriptors.ts'
import type { ExposeMetrics } from '../../gateway/metrics/exposition.ts'
import {
  exposeClusters,
  exposeIssuers,
  exposeServers,
  exposeThreads,
} from '../../gateway/metrics/main-thread-series.ts'
import { exposeCertificateEnds, warnOfExpiry } from '../../process/certificates/own-certificates.ts'
import { type Component, Started } from '../../process/components/component.ts'
import { reportStalls } from '../../process/stalls/report-stalls.ts'
import { DependencyLoops } from '../last-good/dependency-loops.ts'
import { startStatuses } from '../statuses/statuses.ts'
import { startLogouts } from '../wiring/logouts.ts'
import type { GatewayParts } from './build-parts.ts'
import { Lifecycle } from './lifecycle.ts'
import { createListeners, describeState, ProxyPorts } from './listeners.ts'
import type { RunningGateway } from './running-gateway.ts'

/** How long a start waits for PodProtectors and guards; less if it has already waited for an unavailable source. */
const KNOWN_WITHIN_MS = 3_000
const KNOWN_WITHIN_AWAY_MS = 500
const IN_FORCE_LOOK_MS = 5

/** @returns starts them: rejects with a UserError if they cannot start; they have then been stopped @throws {UserError} */
export function assemble(parts: GatewayParts): () => Promise<RunningGateway> {
  const { config, plane, subjects, lastGood, log, clusters, pool, probes, components } = parts
  const life = new Lifecycle(config, components, pool, log, parts.outlets)
  const describe = () => describeState(parts, subjects.describe(), life.draining)
  const listeners = createListeners(parts, describe)
  const { admin, health } = listeners
  const open = () => {
    const [adminPort, healthPort] = [admin.running?.port ?? 0, health.running?.port ?? 0]
    return { admin: adminPort, health: healthPort, control: plane.port, webhook: subjects.webhookPort }
  }
  const logouts = new Started('logouts', () => startLogouts(parts))
  const known = async () => {
    const withinMs = lastGood.serves ? KNOWN_WITHIN_AWAY_MS : KNOWN_WITHIN_MS
    const untilMs = parts.clock.monotonic() + withinMs
    await subjects.known(withinMs)
    while (logouts.running?.known === false && parts.clock.monotonic() < untilMs) await sleep(IN_FORCE_LOOK_MS)
  }
  const ports = new ProxyPorts(parts, known, open)
  components.add(...listComponents(parts, life, listeners, logouts, ports))
  return async () => {
    await life.start()
    const { admin: adminPort, health: healthPort, control: controlPort, webhook: webhookPort } = open()
    return {
      ...{ ports: ports.open, adminPort, healthPort, controlPort, webhookPort },
      adminKubeconfig: plane.adminKubeconfig,
      objects: plane.client,
      stop: () => life.stop(),
      applied: () => pool.applied(),
      async inForce(count) {
        while (clusters.size < count) await sleep(IN_FORCE_LOOK_MS)
        await pool.applied()
        await probes.firstRound()
      },
      crashThread: async (thread) => await pool.slots[thread]?.terminate(),
    }
  }
}

function listComponents(
  parts: GatewayParts,
  life: Lifecycle,
  { admin, health, logLevels }: ReturnType<typeof createListeners>,
  logouts: Component,
  ports: ProxyPorts,
): readonly (Component | undefined)[] {
  const { config, plane, log, outputs, clusters, clock, metrics, pool, rights, servers, issuers } = parts
  const { components, subjects } = parts
  const { auditWebhook } = outputs
  const loops = new DependencyLoops(config, log)
  return [
    // Health is served from the first moment to the last.
    admin,
    health,
    { name: 'log-level', stop: () => logLevels.stop() },
    { name: 'metrics', exposeMetrics: exposeGateway(parts) },
    { name: 'process-metrics', exposeMetrics: (into) => parts.processMetrics.expose(into) },
    { name: 'upstreams', stop: () => parts.upstreams.destroy() },
    // They stop after the threads, and so take everything that these hand over.
    ...subjects.beforeThreads,
    {
      name: 'threads',
      start() {
        pool.takeInherited(config.listen)
        ports.guardOwnListeners()
        pool.start()
      },
      stop: () => pool.end(),
    },
    // Before anything that may wait for a server behind this gateway.
    { name: 'dependency-loops', start: () => void loops.look() },
    plane,
    // Written after the owners of these states have stopped.
    parts.lastGood,
    // Returns its part of shared limits when nothing uses it any more.
    parts.sharing,
    objectSource(parts, loops),
    ...subjects.afterThreads,
    logouts,
    ports,
    { name: 'shutdown', checks: () => life.checks() },
    // Releases its Leases early, so that other replicas take over soon.
    new Started('statuses', () => startStatuses(parts, advertisedAddress(config, admin.running?.port ?? 0))),
    { name: 'rights', stop: () => rights.stop() },
    { name: 'servers', exposeMetrics: (into) => exposeServers(into, servers.all()), stop: () => servers.stop() },
    { name: 'issuers', exposeMetrics: (into) => exposeIssuers(into, issuers.all()), stop: () => issuers.stop() },
    { name: 'probes', stop: () => parts.probes.stop() },
    new Started('stalls', () => {
      const { stallThresholdMs: thresholdMs } = config
      return { stop: reportStalls({ thread: 'main', thresholdMs, metrics: metrics.recorder, log }) }
    }),
    {
      name: 'certificates',
      exposeMetrics: (into) => exposeCertificateEnds(into, components.certificates, clusters, components.reloads),
    },
    new Started('certificate-expiry', () => ({ stop: warnOfExpiry(() => components.certificates, clock, log) })),
    new Started('audit-webhook', () => auditWebhook && followWebhookKubeconfig(auditWebhook, log)),
    new Started('audit-policy', () => followAuditPolicy(config, log, (policy) => pool.auditPolicy(policy))),
    parts.reload,
  ]
}

/** Puts in force what the source delivers. Started once the source has delivered its state, or its last good one. */
function objectSource({ plane, changes, clusters, lastGood, log }: GatewayParts, loops: DependencyLoops): Component {
  let synced = false
  return {
    name: 'source',
    async start() {
      await plane.source.start(
        (change) =>
          void changes.applyChange(change).then(
            () => plane.applied?.(change),
            // A bug: the gateway must survive for the next change.
            (error: unknown) => log.error('the configuration could not be applied', { error }),
          ),
      )
      synced = true
      void loops.look([...clusters.values()].map(({ compiled }) => compiled))
      lastGood.report()
    },
    stop: () => plane.source.stop(),
    checks: () => [{ name: 'configuration', ok: synced, message: 'not read yet' }],
  }
}

// The gateway's metrics: counts of all threads, and what only the main thread sees.
function exposeGateway({ metrics, pool, clusters, outputs, clock }: GatewayParts): ExposeMetrics {
  const overflows: { cluster: string; schema: string; overflows: number }[] = []
  metrics.beforeScrape(async () => {
    await pool.reports()
    overflows.length = 0
    for (const { compiled, flows } of clusters.values()) {
      for (const flow of flows.describe(clock.monotonic())) {
        // Counts in shared memory: reported by one thread only.
        metrics.recorder.set(FLOW_INFLIGHT, flow.inFlight, compiled.name, flow.schema)
        if (flow.overflows > 0) overflows.push({ cluster: compiled.name, ...flow })
      }
    }
    if (outputs.access !== undefined) metrics.recorder.set(LOG_LINES_DROPPED, outputs.access.dropped(), 'access')
    if (outputs.audit !== undefined) metrics.recorder.set(LOG_LINES_DROPPED, outputs.audit.dropped(), 'audit')
    const counts = outputs.auditWebhook?.writer.counts
    if (counts !== undefined) {
      for (const result of WEBHOOK_RESULTS) metrics.recorder.set(AUDIT_WEBHOOK_EVENTS, counts[result], result)
    }
    const { controlAudit } = outputs
    if (controlAudit !== undefined && controlAudit !== outputs.audit) {
      metrics.recorder.set(LOG_LINES_DROPPED, controlAudit.dropped(), 'control-audit')
    }
  })
  return async (into) => {
    await metrics.expose(into)
    const states = pool.slots.map((slot) => {
      const { index, answers, applied, restarts, busySeconds } = slot
      return { thread: index, answers, generation: applied, restarts, busySeconds, ...pool.loadOf(slot) }
    })
    const inForce = Array.from(clusters.values(), ({ compiled }) => compiled)
    exposeThreads(into, states, overflows)
    exposeClusters(into, inForce, clock.now())
  }
}
