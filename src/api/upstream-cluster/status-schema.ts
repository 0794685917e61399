// The schema of UpstreamCluster's status.

import {
  flag,
  integer,
  type JsonSchema,
  list,
  object,
  oneOf,
  type Schema,
  text,
  textOf,
  time,
} from '../kube/json-schema.ts'
import { AUTO_DEGRADE_STATUS_SCHEMA } from './auto-degrade-schema.ts'
import { AUTOSCALER_REPORT_SCHEMA } from './cluster-autoscaler-schema.ts'
import {
  type ClientsSeen,
  type Condition,
  type DegradeStatus,
  type GatewayProtection,
  type GatewayStatus,
  LAST_SEEN_STEP_MINUTES,
  type RecoveryCheck,
  type RecoveryStatus,
  type UpstreamClusterStatus,
} from './status.ts'

const MAX_GENERATION = Number.MAX_SAFE_INTEGER

const condition = object<Condition>(
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
)

const protection = object<GatewayProtection>(
  'What the replica does to protect pods.',
  {
    cell: text('spec.podProtection.cell.'),
    state: textOf<GatewayProtection['state']>(
      'Judging: it knows the PodProtectors; Counting: it also counts the pods; Starting; or Broken.',
    ),
    since: time('When the state began.'),
    message: text('Why it is Broken.'),
  },
  ['cell'],
)

const gateway = object<GatewayStatus>(
  'A replica of the gateway.',
  {
    name: text('The replica.'),
    threads: integer('Threads that serve clients.', 0),
    threadsApplied: integer('Threads that have observedGeneration, or a newer one, in force.', 0),
    observedGeneration: generation('metadata.generation that the replica has put in force, or is about to.'),
    appliedAt: time('When the last thread had it in force.'),
    message: text('What keeps the replica from more, or what it works without.'),
    podProtection: protection,
    lastSeen: object<ClientsSeen>(
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
)

const recoveryCheck = object<RecoveryCheck>(
  'What has to hold until the next mode is set.',
  {
    name: text('Endpoints, Upstream, Nodes or Disruption.'),
    ok: flag('Whether it holds.'),
    message: text('What was seen.'),
  },
  ['name', 'ok', 'message'],
)

const degrade = object<DegradeStatus>('What the leader among the gateways sees of an incident.', {
  readyNodesBefore: integer('Share of Ready nodes before it, in per cent; absent: nobody has seen it.', 0, 100),
  auto: AUTO_DEGRADE_STATUS_SCHEMA,
  recovery: object<RecoveryStatus>(
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
  return { ...integer(description, 0, MAX_GENERATION), format: 'int64' }
}

function byKey<S extends JsonSchema>(schema: S, key: string): S {
  return { ...schema, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] }
}

export const UPSTREAM_CLUSTER_STATUS_SCHEMA: Schema<UpstreamClusterStatus> = {
  ...object<UpstreamClusterStatus>('What the gateways report.', {
    observedGeneration: generation('metadata.generation that was looked at last.'),
    conditions: byKey(
      list(
        'Ready, EndpointsHealthy, CredentialsValid, ClientCertificatesAccepted, Degraded, ServersResolved, LimitsShared, PodsProtected, AutoDegraded, AutoscalerHealthy.',
        condition,
      ),
      'type',
    ),
    endpoints: object<NonNullable<UpstreamClusterStatus['endpoints']>>('The servers.', {
      ready: integer('Enabled and healthy ones.', 0),
      total: integer('All in spec.servers; of one with `resolve` each address.', 0),
    }),
    gateways: byKey(
      list(
        'What each replica has in force: proof that a switch works everywhere.',
        // Another replica may be of a newer version: what it reports is kept.
        { ...gateway, 'x-kubernetes-preserve-unknown-fields': true },
      ),
      'name',
    ),
    degrade: { ...degrade, 'x-kubernetes-preserve-unknown-fields': true },
    autoscaler: AUTOSCALER_REPORT_SCHEMA,
  }),
  'x-kubernetes-preserve-unknown-fields': true,
}
