// Builds the parts of a gateway from its settings, and starts them.

import type { Logger } from '../../api/ports/ports.ts'
import { type LineWriter, openLineWriter } from '../../io/logs/line-writer.ts'
import { createLogger } from '../../io/logs/log.ts'
import { RecentLines } from '../../io/logs/recent-lines.ts'
import { LIMITED, MEMORY_CEILING, MEMORY_LIMIT } from '../../io/metrics/descriptors.ts'
import { createProcessMetrics } from '../../io/metrics/process-metrics.ts'
import type { FileLock } from '../../io/store/lock.ts'
import { systemClock } from '../../io/world/clock.ts'
import { openAuditOutputs } from '../audit/outputs.ts'
import { readAuditPolicyFile } from '../audit/policy-file.ts'
import { loadServingPair } from '../certificates/serving-pair.ts'
import { sharePki } from '../certificates/shared-pki.ts'
import type { Config } from '../config/config.ts'
import { LastGoodStates } from '../last-good/states.ts'
import { logMemoryPlan, type MemoryPlan, planMemory } from '../memory/memory-plan.ts'
import { createObjectPlane, planeWithoutApi } from '../object-plane/create-plane.ts'
import { Protection, type ProtectionDeps } from '../protection/protection.ts'
import { wire } from '../wiring/wire.ts'
import { checkStart, claimStore } from './check-start.ts'
import { Lifecycle } from './lifecycle.ts'
import type { GatewayOverrides, RunningGateway } from './running-gateway.ts'

const STDOUT = 1
const STDERR = 2

/** @throws {UserError} with one clear line for what the operator can fix */
export async function startGateway(asked: Config, given: Partial<GatewayOverrides> = {}): Promise<RunningGateway> {
  const outlets = new AsyncDisposableStack()
  try {
    const recent = new RecentLines(given.logLines ?? closedBy(outlets, openLineWriter(STDERR)))
    const log = given.log ?? createLogger({ level: asked.logLevel, destination: recent })
    const memory = planMemory(asked)
    const { config } = memory
    logMemoryPlan(memory, log)
    await checkStart(config, log)
    const lock = given.source === undefined ? claimStore(config) : undefined
    outlets.defer(() => lock?.release())
    return await startParts({ memory, log, recent, given, lock, outlets })
  } catch (error) {
    // What cannot be closed must not hide why the start has failed.
    await outlets.disposeAsync().catch(() => undefined)
    throw error instanceof SuppressedError ? error.suppressed : error
  }
}

function closedBy(outlets: AsyncDisposableStack, writer: LineWriter): LineWriter {
  return outlets.adopt(writer, () => writer.close())
}

interface Begun {
  readonly memory: MemoryPlan
  readonly log: Logger
  readonly recent: RecentLines
  readonly given: Partial<GatewayOverrides>
  /** Of the embedded store; undefined = there is none. */
  readonly lock: FileLock | undefined
  /** What is closed last, in whatever way the gateway ends. */
  readonly outlets: AsyncDisposableStack
}

/** From here on files of the data directory are written. */
async function startParts({ memory, log, recent, given, lock, outlets }: Begun): Promise<RunningGateway> {
  const { config } = memory
  // What a Lifecycle stops, until there is one.
  await using begun = new AsyncDisposableStack()
  const processMetrics = createProcessMetrics(() => systemClock.monotonic())
  const lastGood = new LastGoodStates(config, systemClock, log)
  begun.defer(() => lastGood.stop())
  if (given.source === undefined) {
    await sharePki(config, log, lastGood.exists('objects') ? lastGood.waitMs : undefined)
  }
  const serving = loadServingPair(config)
  const { auditPolicyFile } = config
  const auditPolicy = auditPolicyFile === '' ? undefined : readAuditPolicyFile(auditPolicyFile, log)
  const auditOutputs = openAuditOutputs(config, log, processMetrics.calls, outlets)
  const { controlAudit } = auditOutputs
  const plane =
    given.source === undefined
      ? createObjectPlane(config, log, processMetrics.calls, controlAudit, lastGood, lock)
      : planeWithoutApi(given.source)
  begun.defer(() => plane.stop())
  const access = given.access ?? (config.accessLog ? openLineWriter(STDOUT) : undefined)
  outlets.defer(() => access?.close())
  let protection: Protection | undefined
  const parts = wire({
    config,
    memory,
    serving,
    outputs: { log, access, auditPolicy, ...auditOutputs },
    source: plane.source,
    inline: given.inline ?? false,
    protection: () => protection?.gate,
    lastGood,
    begun,
    given,
  })
  plane.guardPort?.(parts.admission, parts.failures, (limit, known) =>
    parts.recorder.add(LIMITED, 1, limit, known ? 'true' : 'false'),
  )
  const { bytes, unbounded } = memory.ceiling
  parts.recorder.set(MEMORY_CEILING, unbounded.length > 0 ? 0 : bytes)
  parts.recorder.set(MEMORY_LIMIT, memory.limitBytes)
  const { clusters, clock, clocks, guard, pool } = parts
  const onNamespaces: ProtectionDeps['onNamespaces'] = (namespaces) => pool.protectedNamespaces(namespaces)
  protection = new Protection({
    config,
    client: plane.client,
    server: plane.server,
    lastGood,
    revoked: plane.revoked,
    admission: parts.admission,
    clusters,
    guard,
    clock,
    clocks,
    log,
    calls: processMetrics.calls,
    onNamespaces,
  })
  const life = new Lifecycle({
    memory,
    parts,
    plane,
    protection,
    processMetrics,
    log,
    outputs: { recent, ...auditOutputs },
    outlets,
    lastGood,
  })
  begun.move()
  try {
    await life.start()
  } catch (error) {
    await life.abandon()
    throw error
  }
  return life
}
