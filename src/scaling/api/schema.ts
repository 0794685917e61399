// The schema of ScaleDownPolicy, with every default.

import {
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
  wholeNumber,
} from '../../kit/api/json/json-schema.ts'
import { labelSelector } from '../../kit/api/validation/label-selector-schema.ts'
import { SCALE_GROUP } from '../../kube/api/own-names.ts'

export const SCALE_DOWN_POLICY_KIND = 'ScaleDownPolicy'

const MAX_NAME = 253
/** A prefix, a slash, a name. */
const MAX_KEY = 317

const preference = object(
  'A rule for which of two pods goes first.',
  {
    by: oneOf(
      'UnschedulableNode: the one whose node is cordoned or has a taint NoSchedule or NoExecute. EmptiestNode: the one on the node ' +
        'with the fewest pods, those of DaemonSets not counted; nodes are emptied one after the other. TopologyExcess: the one where ' +
        'most pods of the workload are, by topologyKey. Annotation: the one with the lowest number in an annotation; pods without one go last.',
      ['UnschedulableNode', 'EmptiestNode', 'TopologyExcess', 'Annotation'],
    ),
    topologyKey: text('Label of nodes, for TopologyExcess.', { minLength: 1, maxLength: MAX_KEY }),
    annotation: text('Annotation of pods, for Annotation.', { minLength: 1, maxLength: MAX_KEY }),
  },
  ['by'],
)

export const SCALE_DOWN_POLICY_SPEC_SCHEMA = object(
  'Which workloads, and which of their pods go first.',
  {
    clusters: atMost(
      100,
      list('UpstreamClusters, by name. Default: all.', text('A name.', { minLength: 1, maxLength: MAX_NAME })),
    ),
    selector: labelSelector(
      'Labels of the pods, as in the pod template of their workload. Empty: all pods of the namespace.',
    ),
    prefer: atMost(
      8,
      list(
        'In this order: the first one in which two pods differ decides; after them the rules of the controller.',
        preference,
        1,
      ),
    ),
    onUnavailable: defaultsTo(
      'Forward',
      oneOf('What happens to a scale-down whose victims cannot be chosen.', ['Forward', 'Reject']),
    ),
    settleMillis: defaultsTo(
      300,
      integer(
        'Milliseconds between the deletion costs being visible and the scale-down being forwarded: the controller reads pods by a watch.',
        0,
        5000,
      ),
    ),
    maxDelayMillis: defaultsTo(
      1500,
      integer(
        'Maximum milliseconds for the choice, after which onUnavailable decides; settleMillis is added to it.',
        100,
        10_000,
      ),
    ),
    shadow: defaultsTo(false, flag('Only name the pods that would be chosen, in a Warning, and change nothing.')),
  },
  ['selector', 'prefer'],
)

const condition = object(
  'A condition of the policy.',
  {
    type: text('Ready: it is in force. Steered: it chose the pods of the last scale-down.'),
    status: oneOf('Whether it holds.', ['True', 'False', 'Unknown']),
    reason: text('Reason, as one word for programs.'),
    message: text('Reason, as a sentence for people.'),
    observedGeneration: wholeNumber('metadata.generation to which it applies.', 'int64'),
    lastTransitionTime: time('When status last changed.'),
  },
  ['type', 'status', 'reason', 'message', 'lastTransitionTime'],
)

const names = (description: string): Schema<readonly string[]> => atMost(50, list(description, text('A name.')))

const lastScaleDown = object(
  'The last scale-down to which it applied.',
  {
    time: time('Time of the write.'),
    cluster: text('The UpstreamCluster.'),
    workload: text('What was scaled: deployments/web.'),
    from: wholeNumber('Pods before.'),
    to: wholeNumber('Requested replicas.'),
    outcome: text('Steered, Nothing, Shadow, Unsteerable, Unavailable or Reverted.'),
    message: text('Reason, for people.'),
    victims: names('Pods that were given a deletion cost, at most 50.'),
    conflicts: names('Pods whose deletion cost was set by another client, and left unchanged.'),
  },
  ['time', 'cluster', 'workload', 'from', 'to', 'outcome'],
)

export const SCALE_DOWN_POLICY_STATUS_SCHEMA = object('State of the policy.', {
  observedGeneration: wholeNumber('metadata.generation that is in force.', 'int64'),
  conditions: byKey('type', list('Its conditions.', condition)),
  lastScaleDown,
})

export const SCALE_DOWN_POLICY_SCHEMA: JsonSchema = kubeObject(
  'ScaleDownPolicy says which pods go first when a workload is scaled down through the gateway.',
  `${SCALE_GROUP}/v1alpha1`,
  SCALE_DOWN_POLICY_KIND,
  { spec: SCALE_DOWN_POLICY_SPEC_SCHEMA, status: SCALE_DOWN_POLICY_STATUS_SCHEMA },
  ['spec'],
)
