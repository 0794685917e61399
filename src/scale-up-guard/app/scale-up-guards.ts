// Wires the scale-up guards: the main thread's controllers, their clients and Lease, and what gateway threads enforce.

import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { apiVersionOf } from '../../kube/api/resource-kind.ts'
import { EventRecorder, type Involved, involvedIn } from '../../kube/controllers/events/event-recorder.ts'
import { leadAlone, leadByLease } from '../../kube/controllers/kernel/leadership.ts'
import type { StatusTransition } from '../../kube/core/status-transition.ts'
import type { KubeClient } from '../../kube/io/client.ts'
import { Started } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import { SCALE_UP_GUARDS } from '../api/scale-up-guard-kind.ts'
import type { GuardEvents } from '../controllers/guard/guard-term.ts'
import { ScaleUpGuards } from '../controllers/guard/scale-up-guards.ts'
import type { CompiledGuard } from '../core/guard/compile-guard.ts'
import { GUARDS_IN_FORCE } from '../core/guard/guards-in-force.ts'
import { createGuardMetrics, type GuardMetrics } from '../metrics/descriptors.ts'

export interface GuardsDeps {
  readonly config: Config
  /** The object plane's client; undefined if objects are files. */
  readonly client: ObjectClient | undefined
  readonly clientOf: (cluster: string) => KubeClient
  readonly topics: TopicChannel
  readonly metrics: Pick<GatewayMetrics, 'families'>
  readonly clock: Clock
  readonly log: Logger
}

interface RunningScaleUpGuards {
  /** Resolves when the backoffs in force are known, or after `withinMs`. */
  known(withinMs: number): Promise<void>
  describe(): object
  stop(): Promise<void>
}

const KNOWN_LOOK_MS = 5
const LEASE = { namespace: 'default', name: 'portcullis-scale-up-guard' }

export function createScaleUpGuards(deps: GuardsDeps): ScaleUpGuardsComponent {
  return new ScaleUpGuardsComponent(deps)
}

class ScaleUpGuardsComponent extends Started<RunningScaleUpGuards> {
  readonly state = 'scaleUpGuards'

  constructor(deps: GuardsDeps) {
    super('scale-up-guards', () => startScaleUpGuards(deps))
  }

  async known(withinMs: number): Promise<void> {
    await this.running?.known(withinMs)
  }

  describe(): object | null {
    return this.running?.describe() ?? null
  }
}

/** undefined if objects are files: they have no status to store a backoff. */
function startScaleUpGuards(parts: GuardsDeps): RunningScaleUpGuards | undefined {
  const { config, client, clientOf, topics, clock, log } = parts
  const counts = createGuardMetrics(parts.metrics.families)
  if (client === undefined) return undefined
  const { replicaName: replica } = config
  const told = new EventRecorder({ replica, clock, log })
  const guards = new ScaleUpGuards({
    control: client,
    clientOf,
    // No other process has the embedded store.
    elect: () => (config.source === 'embedded' ? leadAlone(log) : leadByLease(client, { ...LEASE, replica, log })),
    onInForce: (inForce) => topics.publish(GUARDS_IN_FORCE, inForce),
    clock,
    log,
    events: guardEvents(counts, (about, news) => told.record(client, about, news)),
  })
  return {
    async known(withinMs) {
      const deadline = clock.monotonic() + withinMs
      while (!guards.synced && clock.monotonic() < deadline) await sleep(KNOWN_LOOK_MS)
    },
    describe: () => guards.describe(),
    async stop() {
      await guards.stop()
      await told.stop()
    },
  }
}

function guardEvents(
  metrics: GuardMetrics,
  tell: (about: Involved, news: StatusTransition) => void,
): GuardEvents & { invalid(object: JsonObject, why: string): void } {
  return {
    backedOff: (guard, group, { attempt, failed, machines, reason }, untilMs) => {
      metrics.acted(guard.management, guard.name, 'backoff', 'done')
      const until = new Date(untilMs).toISOString()
      const message = `${group}: ${failed} of ${machines} machines failed (${reason}); backing off until ${until} (attempt ${attempt})`
      tell(referenceOf(guard), { type: 'Warning', reason: 'ScaleUpBackedOff', message })
    },
    corrected: (guard, group, result, text) => {
      metrics.acted(guard.management, guard.name, 'correction', result)
      if (result === 'stale') return
      const [type, reason] =
        result === 'done' ? (['Normal', 'TargetCorrected'] as const) : (['Warning', 'CorrectionFailed'] as const)
      tell(referenceOf(guard), { type, reason, message: `${group}: ${text}` })
    },
    counted: (guard, groups, backedOff) => metrics.counted(guard.management, guard.name, groups, backedOff),
    ended: (guard) => metrics.forget(guard.management, guard.name),
    invalid: (object, message) => tell(involvedIn(object), { type: 'Warning', reason: 'Invalid', message }),
  }
}

function referenceOf({ name, uid }: CompiledGuard): Involved {
  return { apiVersion: apiVersionOf(SCALE_UP_GUARDS), kind: SCALE_UP_GUARDS.kind, namespace: '', name, uid }
}
