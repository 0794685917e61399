// The admin and health listeners, which open first and close last, with what they show of the process; and the gateway threads' ports, which open
// last.

import { KnownSecrets, type Redaction } from '../../admin/app/inside/known-secrets.ts'
import { LogLevels, logLevelRoutes } from '../../admin/app/inside/log-levels.ts'
import { Profiles, profileRoutes } from '../../admin/app/inside/profiles.ts'
import { sharesRoute } from '../../admin/app/inside/shares.ts'
import { supportBundleRoute } from '../../admin/app/inside/support-bundle.ts'
import { AdminPort } from '../../admin/app/port/admin-port.ts'
import type { ListSize } from '../../gateway/api/list-request.ts'
import { seatsOf } from '../../gateway/core/list-cost/seats.ts'
import { effectiveMode } from '../../gateway/core/policy/degrade.ts'
import type { LiveCluster } from '../../gateway/state/clusters.ts'
import type { LeveledLogger } from '../../kit/io/logs/log.ts'
import { VERSION } from '../../kit/io/program/build.ts'
import type { Check } from '../../process/api/check.ts'
import { Started } from '../../process/components/component.ts'
import { HealthPort } from '../health/health-port.ts'
import type { MemoryPlan } from '../memory/memory-plan.ts'
import type { ThreadReport } from '../threads/thread-calls.ts'
import { type OpenPorts, ownListeners } from '../wiring/own-listeners.ts'
import type { GatewayParts } from './build-parts.ts'

/** @param describe what is in force, including secrets: they are removed here */
export function createListeners(parts: GatewayParts, describe: () => Promise<object>) {
  const { config, plane, log, recent, processMetrics, clock, pool, files, replicas, components, subjects } = parts
  const { audit } = parts.outputs
  const metrics = { contentType: parts.metrics.contentType, text: components.metricsText }
  const ready = () => {
    const checks = components.checks()
    for (const { name, ok } of checks) if (!ok) processMetrics.checkFailed(name)
    return checks
  }
  const checks = { live: () => [], ready }
  const logLevels = new LogLevels({
    main: 'level' in log ? (log as LeveledLogger) : undefined,
    usual: config.logLevel,
    setThreads: (level) => pool.logLevel(level),
    log,
    now: () => clock.now(),
  })
  const profiles = new Profiles(pool)
  const secrets = new KnownSecrets(config, parts.clusters)
  const redaction = (): Redaction => secrets.redaction([files.token])
  const { platform, arch } = process
  const routes = [
    ...subjects.routes,
    sharesRoute(pool),
    ...logLevelRoutes(logLevels, replicas),
    ...profileRoutes(profiles),
    supportBundleRoute({
      config,
      version: { version: VERSION, node: process.version, platform, arch },
      describe,
      metrics,
      recentLog: () => recent.text(),
      profiles,
      redaction,
    }),
  ]
  const open = { config, metrics, log }
  return {
    logLevels,
    admin: new Started('admin', () =>
      AdminPort.open({
        ...open,
        files,
        login: plane.adminLogin,
        browserLogins: subjects.browserLogins,
        failures: parts.failures,
        audit: audit && ((line) => audit.write(line)),
        routes,
        state: { ...checks, describe: async () => Object(redaction().object(await describe())) },
      }),
    ),
    health: new Started('health', () => HealthPort.open({ ...open, state: checks, post: plane.review })),
  }
}

// The gateway threads' ports open once requests can be decided correctly: the configuration is in force, endpoints have been probed as far as
// that can be done at once, and pod protection is known.
export class ProxyPorts {
  readonly name = 'ports'
  readonly #parts: Pick<GatewayParts, 'config' | 'pool' | 'guard' | 'probes'>
  readonly #known: () => Promise<unknown>
  readonly #others: () => Omit<OpenPorts, 'listen'>
  #probed = false
  /** In the order of `--listen`; empty until open. */
  open: readonly number[] = []

  /**
   * @param known resolves when other required state is known, or has taken too long
   * @param others ports of the other listeners
   */
  constructor(
    parts: Pick<GatewayParts, 'config' | 'pool' | 'guard' | 'probes'>,
    known: () => Promise<unknown>,
    others: () => Omit<OpenPorts, 'listen'>,
  ) {
    this.#parts = parts
    this.#known = known
    this.#others = others
  }

  /** @throws {UserError} if one cannot be opened */
  async start(): Promise<void> {
    const { config, pool, probes } = this.#parts
    await Promise.all([probes.mayServe(), pool.online(), this.#known()])
    await pool.applied()
    this.#probed = true
    this.open = await pool.listen(config.listen)
    this.guardOwnListeners()
  }

  /** Keeps the gateway from connecting to itself. Call it again when more ports are known. */
  guardOwnListeners(): void {
    const { config, pool, guard } = this.#parts
    const addresses = ownListeners(config, { ...this.#others(), listen: this.open })
    guard.setOwnListeners(addresses)
    pool.ownListeners(addresses)
  }

  checks(): readonly Check[] {
    const listening = this.open.length > 0
    const serving = this.#parts.pool.slots.some(({ state }) => state === 'listening')
    return [
      { name: 'health-checks', ok: this.#probed, message: 'the first round of health checks has not finished' },
      { name: 'listeners', ok: listening, message: 'not open yet' },
      // A dead thread is replaced, after a pause if it dies again: while all are gone no connection is accepted.
      { name: 'threads', ok: !listening || serving, message: 'no gateway thread is running' },
    ]
  }
}

// Content of /debug/config: the configuration in force, without secrets (the admin routes redact it once more).

/**
 * A thread that does not respond within a second is shown as such.
 * @param subjects states of those that can be left out, by name
 */
export async function describeState(
  parts: GatewayParts,
  subjects: Readonly<Record<string, object | null>>,
  draining: boolean,
): Promise<object> {
  const { clusters, pool, upstreams, sharing, memory } = parts
  const { problems, appliedAtMs } = parts.changes.inForce
  const [reports, connections] = await Promise.all([pool.reports(), pool.askThreads('upstreams', undefined)])
  const sum = (of: (report: ThreadReport) => number): number =>
    reports.reduce((total, report) => total + (report === undefined ? 0 : of(report)), 0)
  return {
    generation: clusters.generation,
    appliedAt: appliedAtMs === 0 ? null : new Date(appliedAtMs).toISOString(),
    draining,
    running: sum(({ running }) => running),
    tokensRemembered: sum(({ tokensRemembered }) => tokensRemembered),
    threads: pool.slots.map(({ index, state, applied, restarts, answers }, i) => ({
      thread: index,
      state,
      generation: applied,
      restarts,
      answers,
      running: reports[i]?.running ?? null,
      clientConnections: reports[i]?.clients ?? null,
    })),
    memory: describeMemory(memory),
    problems,
    globalLimits: sharing?.limits.status() ?? null,
    ...subjects,
    connections: connections.flatMap(({ thread, answer }) => answer.map((one) => ({ thread, ...one }))),
    probeConnections: [...upstreams.describe()],
    clusters: [...clusters.values()].map((live) => describeCluster(live, parts)),
  }
}

/** All rows, largest first. Infinite: a setting is unlimited. */
function describeMemory({ ceiling, limitBytes, limitFrom, lowered, heap }: MemoryPlan): object {
  const { bytes, unbounded, rows } = ceiling
  return {
    ceilingBytes: unbounded.length > 0 ? null : bytes,
    unbounded,
    limitBytes,
    limitFrom,
    lowered,
    threadHeapMiB: heap,
    rows: rows.map(({ what, bytes: most, per, lever = null }) => ({ what, bytes: most, per, setting: lever })),
  }
}

/** Lists per cluster in /debug/config. */
const LISTS_SHOWN = 20

function describeList({ apiGroup, resource, namespace, shape, bytes, items, seenMs }: ListSize, nowMs: number): object {
  return {
    resource: apiGroup === '' ? resource : `${resource}.${apiGroup}`,
    namespace,
    selector: shape,
    bytes,
    items: items === 0 ? null : items,
    seats: seatsOf(bytes),
    ageSeconds: Math.round(Math.max(0, nowMs - seenMs) / 1000),
  }
}

function describeCluster(live: LiveCluster, { clock, rights }: GatewayParts): object {
  const { client, serving, ...compiled } = live.compiled
  return {
    ...compiled,
    client: {
      insecure: client.insecure,
      serverName: client.serverName,
      hasClientCertificate: client.cert !== '',
      hasBearerToken: client.bearerToken !== '',
    },
    serving: { hasCertificate: serving.cert !== '', hasClientCA: serving.clientCA !== '' },
    effectiveDegradeMode: effectiveMode(live.compiled.degrade, clock.now()),
    rights: rights.get(live.compiled.name),
    endpointStatus: live.endpoints.describe(clock.monotonic()),
    flowControl: live.flows.describe(clock.monotonic()),
    largestLists: live.lists.top(LISTS_SHOWN).map((size) => describeList(size, clock.now())),
  }
}
