// Content of /debug/config: the configuration in force, without secrets (the admin routes redact it once more).

import type { ListSize } from '../../gateway/api/list-request.ts'
import { seatsOf } from '../../gateway/core/list-cost/seats.ts'
import { effectiveMode } from '../../gateway/core/policy/degrade.ts'
import type { LiveCluster } from '../../gateway/state/clusters.ts'
import type { MemoryPlan } from '../memory/memory-plan.ts'
import type { ThreadReport } from '../threads/thread-calls.ts'
import type { GatewayParts } from './build-parts.ts'

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
  const reports = await pool.reports()
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
    connections: reports.flatMap((report, thread) => (report?.upstreams ?? []).map((one) => ({ thread, ...one }))),
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
