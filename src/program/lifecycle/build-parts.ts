// Builds the parts of a gateway from its settings. From here on files in the data directory are written.

import { adminFiles } from '../../admin/app/port/admin-port.ts'
import { KnownReplicas } from '../../admin/app/replicas/known-replicas.ts'
import { openAuditOutputs } from '../../audit/app/outputs.ts'
import { readAuditPolicyFile } from '../../audit/app/policy-file.ts'
import { LIMITED, MEMORY_CEILING, MEMORY_LIMIT } from '../../gateway/metrics/descriptors.ts'
import { createProcessMetrics } from '../../gateway/metrics/process-metrics.ts'
import type { Logger } from '../../kit/api/ports.ts'
import type { FileLock } from '../../kit/io/locks/file-lock.ts'
import { openLineWriter } from '../../kit/io/logs/line-writer.ts'
import type { RecentLines } from '../../kit/io/logs/recent-lines.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { loadServingPair } from '../../process/certificates/serving-pair.ts'
import { sharePki } from '../../process/certificates/shared-pki.ts'
import { Components } from '../../process/components/component.ts'
import { LastGoodStates } from '../last-good/states.ts'
import type { MemoryPlan } from '../memory/memory-plan.ts'
import { createObjectPlane, planeWithoutApi } from '../object-plane/create-plane.ts'
import { SubjectComponents } from '../subjects/components.ts'
import { loadSubjects } from '../subjects/load.ts'
import { wire } from '../wiring/wire.ts'
import type { GatewayOverrides } from './running-gateway.ts'

const STDOUT = 1

interface Begun {
  readonly memory: MemoryPlan
  readonly log: Logger
  readonly recent: RecentLines
  readonly given: Partial<GatewayOverrides>
  /** Lock of the embedded store; undefined = there is none. */
  readonly lock: FileLock | undefined
  /** Closed last, however the gateway ends. */
  readonly outlets: AsyncDisposableStack
  /** Stops running parts if another one cannot be built. */
  readonly begun: AsyncDisposableStack
}

export type GatewayParts = Awaited<ReturnType<typeof buildParts>>

/** @throws {UserError} for errors that the operator can fix */
export async function buildParts({ memory, log, recent, given, lock, outlets, begun }: Begun) {
  const { config } = memory
  const processMetrics = createProcessMetrics(() => systemClock.monotonic())
  const { calls } = processMetrics
  const lastGood = new LastGoodStates(config, systemClock, log)
  if (given.source === undefined) {
    await sharePki(config, log, lastGood.exists('objects') ? lastGood.waitMs : undefined)
  }
  const { components, led, overlay } = await loadSubjects()
  const serving = loadServingPair(config)
  const { auditPolicyFile } = config
  const auditPolicy = auditPolicyFile === '' ? undefined : readAuditPolicyFile(auditPolicyFile, log)
  const auditOutputs = openAuditOutputs(config, log, calls, outlets)
  const plane =
    given.source === undefined
      ? createObjectPlane(config, log, calls, auditOutputs.controlAudit, lastGood, { lock, overlay })
      : planeWithoutApi(given.source)
  begun.defer(() => plane.stop())
  const access = given.access ?? (config.accessLog ? openLineWriter(STDOUT) : undefined)
  outlets.defer(() => access?.close())
  const outputs = { log, access, auditPolicy, ...auditOutputs }
  const inline = given.inline ?? false
  const wired = wire({ config, memory, serving, outputs, calls, inline, lastGood, begun, given })
  const { pool, changes, metrics, admission, failures } = wired
  const { recorder } = metrics
  plane.guardPort?.(admission, failures, (limit, known) => recorder.add(LIMITED, 1, limit, known ? 'true' : 'false'))
  const { bytes, unbounded } = memory.ceiling
  recorder.set(MEMORY_CEILING, unbounded.length > 0 ? 0 : bytes)
  recorder.set(MEMORY_LIMIT, memory.limitBytes)
  const { client, server, revoked } = plane
  const files = adminFiles(config, log)
  const replicas = new KnownReplicas({ config, client, access: plane.peerAccess, files, log })
  const running = new Components(log)
  const subjects: SubjectComponents = new SubjectComponents(components, {
    ...wired,
    config,
    client,
    server,
    lastGood,
    revoked,
    log,
    calls,
    topics: pool.topics,
    questions: pool.questions,
    audit: outputs.audit,
    replicas,
    waits: given.forwardingWaits,
    shown: {
      problems: () => changes.inForce.problems,
      object: (cluster) => changes.object(cluster),
      certificates: () => running.certificates,
      switchedHere: (cluster) => plane.switchedHere?.(cluster),
      podProtection: () => subjects.podProtection,
      readCache: () => subjects.readCache,
    },
    onApplied: (listener) => changes.onApplied((_, changed) => listener(changed)),
  })
  begun.defer(() => subjects.stop())
  return {
    ...wired,
    config,
    memory,
    log,
    recent,
    outputs,
    outlets,
    processMetrics,
    lastGood,
    plane,
    client,
    /** Certificate and token of the admin listener. */
    files,
    replicas,
    /** All of them, once they have been added. */
    components: running,
    subjects,
    led,
  }
}
