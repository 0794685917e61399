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
      `Reasons of its condition InfrastructureReady=False that waiting does not resolve. Default ${DEFAULT_CONDITION_REASONS.join(', ')}.`,
      text('A reason.', { minLength: 1, maxLength: MAX_TEXT }),
    ),
  ),
  minDuration: duration('How long such a condition has to hold.', '20s'),
  noProviderIDFor: duration(
    'Age at which a Machine without spec.providerID has failed: the cloud created no instance.',
    '3m',
  ),
  noNodeFor: duration('Age at which a Machine, or a replica of a MachinePool, without a Node has failed.', '10m'),
})

const backoff = object(
  "How long scale-ups of a group that has failed are refused. Must end before the autoscaler's own backoff (5 to 30 minutes).",
  {
    initial: duration('After the first failure.', '4m30s'),
    max: duration('Maximum: each later failure doubles the backoff up to this.', '27m'),
    resetAfter: duration('Time without a failure after which the next one counts as the first.', '3h'),
  },
)

export const SCALE_UP_GUARD_SPEC_SCHEMA = object(
  'Which node groups are guarded, and how.',
  {
    clusterRef: object(
      'UpstreamClusters, by name.',
      {
        management: name('The one that has the Machines, through which the autoscaler scales their groups.'),
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
        `Users whose scale-ups are refused; others get a Warning. Default ${DEFAULT_AUTOSCALER_USERS.join(', ')}.`,
        text('A user name.', { minLength: 1, maxLength: 512 }),
      ),
    ),
    failure,
    backoff,
    correctTarget: defaultsTo(true, flag('Lower the replicas of a group by the number of its Machines that failed.')),
    deleteLongUnregistered: defaultsTo(
      true,
      flag('Machines that have an instance, but have had no Node for noNodeFor, are deleted as well.'),
    ),
    shadow: defaultsTo(false, flag('Evaluate, count and report, but neither refuse nor change anything.')),
  },
  ['clusterRef'],
)

function count(description: string): Schema<number> {
  return integer(description, 0)
}

const request = object(
  'Replicas that were requested and have no Node yet.',
  {
    increase: count('How many.'),
    at: time('When they were requested.'),
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
    target: count('spec.replicas when it was last seen.'),
    requests: list('Requested replicas that have no Node yet.', request),
    failedCount: count('Machines that have failed.'),
    failed: list('The first of them.', failed),
    machineCount: count('Machines of the group when it was backed off.'),
    backoffUntil: time('Scale-ups are refused until then.'),
    backoffSeconds: count('Length of this backoff.'),
    backoffReason: text('Reason of the first failure that caused it.'),
    backoffFailedCount: count('Machines that had failed when it began.'),
    attempt: count('Number of consecutive backoffs of the group.'),
    lastFailureTime: time('When a Machine of the group last failed.'),
    lastAction: text('The last action: machines marked, target lowered.'),
    lastActionTime: time('When it was taken.'),
    neverActed: text(
      'Why the target is not lowered: paused, rolling-out, target-changed, at-minimum, already-lowered, unregistered-are-kept, correction-is-off or shadow.',
    ),
    machineHealthCheck: text(
      'A MachineHealthCheck that also deletes Machines of the group, which are then requested again.',
    ),
    missingSince: list('For a MachinePool: since when each replica has had no Node.', time('A time.')),
  },
  ['name', 'target'],
)

const condition = object(
  'A condition of the guard.',
  {
    type: text('Ready: the guard observes the groups; NodesKnown: it sees the Nodes of the workload cluster.'),
    status: oneOf('Whether it holds.', ['True', 'False', 'Unknown']),
    observedGeneration: also(
      { format: 'int64' },
      integer('metadata.generation to which it applies.', 0, Number.MAX_SAFE_INTEGER),
    ),
    lastTransitionTime: time('When the status last changed.'),
    reason: text('Reason, as one word for programs.'),
    message: text('Reason, as a sentence for people.'),
  },
  ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
)

export const SCALE_UP_GUARD_STATUS_SCHEMA = object('What the gateway observes, and resumes from after a restart.', {
  observedGeneration: also(
    { format: 'int64' },
    integer('metadata.generation that was last evaluated.', 0, Number.MAX_SAFE_INTEGER),
  ),
  groupCount: count('Groups that are guarded.'),
  backedOffCount: count('Groups that are backed off.'),
  groups: byKey('name', list('The groups; those that failed come first. At most 500.', group)),
  conditions: byKey('type', list('Ready and NodesKnown.', condition)),
})

export const SCALE_UP_GUARD_SCHEMA: JsonSchema = kubeObject(
  'ScaleUpGuard watches the node groups of Cluster API for scale-ups that fail, and makes the cluster-autoscaler try another group at once.',
  `${SCALE_GROUP}/v1alpha1`,
  SCALE_UP_GUARD_KIND,
  { spec: SCALE_UP_GUARD_SPEC_SCHEMA, status: SCALE_UP_GUARD_STATUS_SCHEMA },
  ['spec'],
)
