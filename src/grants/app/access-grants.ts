// Wires the access grants in the main thread.

import { GRANTS_IN_FORCE } from '../../gateway/core/identity/access-grants.ts'
import type { GatewayMetrics } from '../../gateway/metrics/metrics.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { Clock, Logger } from '../../kit/api/ports.ts'
import type { TopicChannel } from '../../kit/core/topics/topics.ts'
import { addTickable, removeTickable } from '../../kit/io/world/coarse-ticker.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { EventRecorder, involvedIn } from '../../kube/controllers/events/event-recorder.ts'
import { Started } from '../../process/components/component.ts'
import type { Config } from '../../process/config/config.ts'
import { AccessGrantController } from '../controllers/access-grants.ts'
import { readGrant } from '../core/read-grant.ts'
import { GRANTS_CHANGED, OPEN_GRANTS } from '../metrics/descriptors.ts'

interface GrantsDeps {
  readonly config: Pick<Config, 'source' | 'replicaName'>
  /** The object plane's; undefined = objects are files. */
  readonly client: ObjectClient | undefined
  readonly topics: TopicChannel
  readonly metrics: Pick<GatewayMetrics, 'families'>
  readonly clock: Clock
  readonly log: Logger
}

interface RunningGrants {
  describe(): object
  stop(): Promise<void>
}

export function createAccessGrants(deps: GrantsDeps): AccessGrantsComponent {
  return new AccessGrantsComponent(deps)
}

class AccessGrantsComponent extends Started<RunningGrants> {
  readonly state = 'accessGrants'

  constructor(deps: GrantsDeps) {
    super('access-grants', () => startAccessGrants(deps))
  }

  describe(): object | null {
    return this.running?.describe() ?? null
  }
}

/**
 * undefined where objects are not in the embedded API server: only there is it certain who asked for a grant and who approved it, so objects that look like
 * grants elsewhere have no effect.
 */
function startAccessGrants({ config, client, topics, metrics, clock, log }: GrantsDeps): RunningGrants | undefined {
  const open = metrics.families.of(OPEN_GRANTS)
  const changes = metrics.families.of(GRANTS_CHANGED)
  if (client === undefined || config.source !== 'embedded') return undefined
  const events = new EventRecorder({ replica: config.replicaName, clock, log })
  const grants = new AccessGrantController({
    client,
    clock,
    random: Math.random,
    log,
    onInForce(inForce) {
      topics.publish(GRANTS_IN_FORCE, inForce)
    },
    onChange(change, object) {
      changes.add(1, change)
      log.info(change === 'begun' ? 'an access grant is in force' : 'an access grant has ended', fieldsOf(object))
      const reason = change === 'begun' ? 'AccessBegun' : 'AccessEnded'
      events.record(client, involvedIn(object), { type: 'Normal', reason, message: messageOf(object) })
    },
  })
  const ticking = {
    tick(): void {
      grants.tick()
      for (const [phase, count] of grants.counts) open.set(count, phase)
    },
  }
  addTickable(ticking)
  return {
    describe: () => Object.fromEntries(grants.counts),
    async stop() {
      removeTickable(ticking)
      await grants.stop()
      await events.stop()
    },
  }
}

function fieldsOf(object: JsonObject): Record<string, unknown> {
  const { name, spec, status } = readGrant(object)
  const { subject, clusters, groups, reason } = spec
  const [requestedBy, approvedBy] = [status.requestedBy?.user, status.approvedBy?.user]
  return { grant: name, subject, clusters, groups, reason, requestedBy, approvedBy, endsAt: status.endsAt }
}

function messageOf(object: JsonObject): string {
  const { spec, status } = readGrant(object)
  const where = `${spec.clusters.join(', ')} with ${spec.groups.join(', ')}`
  return `${spec.subject.kind} ${JSON.stringify(spec.subject.name)} on ${where}, until ${status.endedAt ?? status.endsAt}`
}
