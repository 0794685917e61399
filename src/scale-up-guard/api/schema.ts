// The schema of ScaleUpGuard, with every default.

import {
  also,
  atMost,
  byKey,
  defaultsTo,
  flag,
  integer,
  type JsonSchema,
  kubeObject,
  list,
  object,
  oneOf,
  type Schema,
  text,
  time,
} from '../../kit/api/json/json-schema.ts'
import { labelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import { DNS_SUBDOMAIN, MAX_DNS_NAME } from '../../kit/api/validation/name-syntax.ts'
import { SCALE_GROUP } from '../../kube/api/own-names.ts'

export const SCALE_UP_GUARD_KIND = 'ScaleUpGuard'

/** Go's unsigned durations; the checks beside the schema reject those that are too short or too long. */
export const DURATION = '^(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ms|s|m|h))+)$'
const MAX_TEXT = 256

function name(description: string): Schema<string> {
  return text(description, { maxLength: MAX_DNS_NAME, minLength: 1, pattern: `^${DNS_SUBDOMAIN}$` })
}

function duration(description: string, value: string): Schema<string> {
  return defaultsTo(value, text(description, { maxLength: 32, pattern: DURATION }))
}

/** Default for an absent list: `defaultsTo` takes single values only. */
export const DEFAULT_AUTOSCALER_USERS: readonly string[] = ['system:serviceaccount:kube-system:cluster-autoscaler']
export const DEFAULT_CONDITION_REASONS: readonly string[] = [
  'InstanceProvisionFailed',
  'InsufficientInstanceCapacity',
  'QuotaExceeded',
]

const failure = object('When a Machine without a node has failed.', {
  conditionReasons: atMost(
    64,
    list(
      `Reasons of its condition InfrastructureReady=False that no waiting makes good. Default ${DEFAULT_CONDITION_REASONS.join(', ')}.`,
      text('A reason.', { minLength: 1, maxLength: MAX_TEXT }),
    ),
  ),
  minDuration: duration('How long such a condition has to hold.', '20s'),
  noProviderIDFor: duration('Age at which a Machine without spec.providerID has failed: the cloud made nothing.', '3m'),
  noNodeFor: duration('Age at which a Machine, or a replica of a MachinePool, without a Node has failed.', '10m'),
})

const backoff = object(
  "How long raises of a group that has failed are refused. Has to end before the autoscaler's own backoff (5 to 30 minutes).",
  {
    initial: duration('After the first failure.', '4m30s'),
    max: duration('Twice as long after each failure that comes later, up to this.', '27m'),
    resetAfter: duration('This long after the last failure the next one counts as the first.', '3h'),
  },
)

export const SCALE_UP_GUARD_SPEC_SCHEMA = object(
  'Which node groups are guarded, and how.',
  {
    clusterRef: object(
      'UpstreamClusters, by name.',
      {
        management: name('The one that has the Machines, and through which the autoscaler writes to their groups.'),
        workload: name('The one that has the Nodes. Default: management.'),
      },
      ['management'],
    ),
    group: defaultsTo('cluster.x-k8s.io', name('API group of Cluster API, as CAPI_GROUP of the autoscaler.')),
    groupSelector: labelSelector(
      'Only MachineDeployments, MachineSets and MachinePools with these labels. Default: all that the autoscaler may scale.',
    ),
    autoscalerUsers: atMost(
      64,
      list(
        `Users whose raises are refused; others get a warning. Default ${DEFAULT_AUTOSCALER_USERS.join(', ')}.`,
        text('A user name.', { minLength: 1, maxLength: 512 }),
      ),
    ),
    failure,
    backoff,
    correctTarget: defaultsTo(true, flag('Lower the replicas of a group by the Machines of it that failed.')),
    deleteLongUnregistered: defaultsTo(
      true,
      flag('Machines that have an instance, but no Node for noNodeFor, are among those that go.'),
    ),
    shadow: defaultsTo(false, flag('Evaluate, count and report, but neither refuse nor change anything.')),
  },
  ['clusterRef'],
)

function count(description: string): Schema<number> {
  return integer(description, 0)
}

const request = object(
  'Replicas that were ordered and have no Node yet.',
  {
    increase: count('How many.'),
    at: time('When they were ordered.'),
    expectedAdd: time('When they count as failed at the latest.'),
    by: text('Field manager that wrote the replicas last.'),
  },
  ['increase', 'at', 'expectedAdd'],
)

const failed = object(
  'A Machine, or a replica of a MachinePool, that failed.',
  {
    machine: text('Name of the Machine.'),
    uid: text('Its uid.'),
    reason: text('Reason of its condition, or NoProviderID or NoNode.'),
    message: text('The message of its condition, shortened.'),
  },
  ['reason'],
)

const group = object(
  'A node group.',
  {
    name: text('KIND/NAMESPACE/NAME, as the autoscaler names it.'),
    target: count('spec.replicas as it was seen last.'),
    requests: list('What was ordered and has not come.', request),
    failedCount: count('Machines that have failed now.'),
    failed: list('The first of them.', failed),
    machineCount: count('Machines of the group when it was backed off.'),
    backoffUntil: time('Raises are refused until then.'),
    backoffSeconds: count('Length of this backoff.'),
    backoffReason: text('Reason of the first failure that it is for.'),
    backoffFailedCount: count('Machines that had failed when it began.'),
    attempt: count('How often in a row the group was backed off.'),
    lastFailureTime: time('When something of it failed last.'),
    lastAction: text('What was done last: machines marked, target lowered.'),
    lastActionTime: time('When.'),
    neverActed: text(
      'Why the target is left alone: paused, rolling-out, target-changed, at-minimum, already-lowered, unregistered-are-kept, correction-is-off or shadow.',
    ),
    machineHealthCheck: text('A MachineHealthCheck that also deletes Machines of the group, and so orders them again.'),
    missingSince: list('For a MachinePool: since when each replica has had no Node.', time('A time.')),
  },
  ['name', 'target'],
)

const condition = object(
  'A condition of the guard.',
  {
    type: text('Ready: the guard looks at the groups; NodesKnown: it sees the Nodes of the workload cluster.'),
    status: oneOf('Whether it holds.', ['True', 'False', 'Unknown']),
    observedGeneration: also(
      { format: 'int64' },
      integer('metadata.generation that this is about.', 0, Number.MAX_SAFE_INTEGER),
    ),
    lastTransitionTime: time('When the status last changed.'),
    reason: text('Why, as one word for programs.'),
    message: text('Why, as a sentence for people.'),
  },
  ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
)

export const SCALE_UP_GUARD_STATUS_SCHEMA = object('What the gateway sees, and what it goes on from after a restart.', {
  observedGeneration: also(
    { format: 'int64' },
    integer('metadata.generation that was looked at last.', 0, Number.MAX_SAFE_INTEGER),
  ),
  groupCount: count('Groups that are guarded.'),
  backedOffCount: count('Those of them that are backed off.'),
  groups: byKey('name', list('The groups; those that failed come first. At most 500.', group)),
  conditions: byKey('type', list('Ready and NodesKnown.', condition)),
})

export const SCALE_UP_GUARD_SCHEMA: JsonSchema = kubeObject(
  'ScaleUpGuard watches the node groups of Cluster API for scale-ups that fail, and sends the cluster-autoscaler to another group at once.',
  `${SCALE_GROUP}/v1alpha1`,
  SCALE_UP_GUARD_KIND,
  { spec: SCALE_UP_GUARD_SPEC_SCHEMA, status: SCALE_UP_GUARD_STATUS_SCHEMA },
  ['spec'],
)
