// The schema of UpstreamCluster's status.

import {
  also,
  byKey,
  flag,
  integer,
  list,
  object,
  oneOf,
  open,
  type Schema,
  text,
  time,
  typedText,
} from '../../../kit/api/json/json-schema.ts'
import { AUTO_DEGRADE_STATUS_SCHEMA } from './auto-degrade-schema.ts'
import { AUTOSCALER_REPORT_SCHEMA } from './cluster-autoscaler-schema.ts'

/** Rounding avoids a status write every second. */
export const LAST_SEEN_STEP_MINUTES = 5
const MAX_GENERATION = Number.MAX_SAFE_INTEGER

const condition = object(
  'A condition of the cluster.',
  {
    type: text(
      'Ready, EndpointsHealthy, CredentialsValid, ClientCertificatesAccepted, Degraded; ServersResolved, LimitsShared, PodsProtected, AutoDegraded and AutoscalerHealthy where the spec asks for it.',
    ),
    status: oneOf('Whether it holds.', ['True', 'False', 'Unknown']),
    observedGeneration: generation('metadata.generation that this is about.'),
    lastTransitionTime: time('When the status last changed.'),
    reason: text('Why, as one word for programs.'),
    message: text('Why, as a sentence for people.'),
  },
  ['type', 'status'],
  ['lastTransitionTime', 'reason', 'message'],
)

const protection = object(
  'What the replica does to protect pods.',
  {
    cell: text('spec.podProtection.cell.'),
    state: typedText<'Judging' | 'Counting' | 'Starting' | 'Broken'>(
      'Judging: it knows the PodProtectors; Counting: it also counts the pods; Starting; or Broken.',
    ),
    since: time('When the state began.'),
    message: text('Why it is Broken.'),
  },
  ['cell'],
  ['state', 'since'],
)

const gateway = object(
  'A replica of the gateway.',
  {
    name: text('The replica.'),
    threads: integer('Threads that serve clients.', 0),
    threadsApplied: integer('Threads that have observedGeneration, or a newer one, in force.', 0),
    observedGeneration: generation('metadata.generation that the replica has put in force, or is about to.'),
    appliedAt: time('When the last thread had it in force.'),
    message: text('What keeps the replica from more, or what it works without.'),
    podProtection: protection,
    lastSeen: object(
      `When clients that matter in an incident came through it last, to ${LAST_SEEN_STEP_MINUTES} minutes. Absent: never since it was started.`,
      {
        controllerManager: time('kube-controller-manager, which evicts pods of nodes without heartbeats.'),
        kubelets: time('Any kubelet: their heartbeats keep nodes Ready.'),
      },
    ),
    refusedDisruptive: integer(
      'Different disruptive requests that it refused in the last minute; above 10 rounded up to a power of two. Absent: none.',
      0,
    ),
  },
  ['name'],
  ['threads', 'threadsApplied', 'observedGeneration', 'appliedAt'],
)

const recoveryCheck = object(
  'What has to hold until the next mode is set.',
  {
    name: text('Endpoints, Upstream, Nodes or Disruption.'),
    ok: flag('Whether it holds.'),
    message: text('What was seen.'),
  },
  ['name', 'ok', 'message'],
)

const degrade = object('What the leader among the gateways sees of an incident.', {
  readyNodesBefore: integer('Share of Ready nodes before it, in per cent; absent: it was not observed.', 0, 100),
  auto: AUTO_DEGRADE_STATUS_SCHEMA,
  recovery: object(
    'How far spec.degrade.recovery is.',
    {
      step: text('The mode that it is at.'),
      since: time('Since when it is at this mode.'),
      startedFrom: text('The strictest mode that it has been at: it goes back no further.'),
      holdingSince: time('Since when all checks have held; absent: they do not.'),
      checks: list('What has to hold until the next mode is set.', recoveryCheck),
      waitingFor: text('What has to happen until the next mode is set.'),
    },
    ['step', 'since', 'startedFrom', 'checks', 'waitingFor'],
  ),
})

function generation(description: string): Schema<number> {
  return also({ format: 'int64' }, integer(description, 0, MAX_GENERATION))
}

export const UPSTREAM_CLUSTER_STATUS_SCHEMA = open(
  object('What the gateways report.', {
    observedGeneration: generation('metadata.generation that was looked at last.'),
    conditions: byKey(
      'type',
      list(
        'Ready, EndpointsHealthy, CredentialsValid, ClientCertificatesAccepted, Degraded, ServersResolved, LimitsShared, PodsProtected, AutoDegraded, AutoscalerHealthy.',
        condition,
      ),
    ),
    endpoints: object(
      'The servers.',
      {
        ready: integer('Enabled and healthy ones.', 0),
        total: integer('All in spec.servers; of one with `resolve` each address.', 0),
      },
      [],
      ['ready', 'total'],
    ),
    gateways: byKey(
      'name',
      list(
        'What each replica has in force: proof that a switch works everywhere.',
        // Another replica may be newer: its fields are kept.
        open(gateway),
      ),
    ),
    degrade: open(degrade),
    autoscaler: AUTOSCALER_REPORT_SCHEMA,
  }),
)
