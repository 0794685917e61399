// spec.podProtection of an UpstreamCluster: whether pod deletions are checked against PodProtectors, and how pods are counted for them. Added;
// KubeGateway has no equivalent. In Podseidon these are flags of the processes of a cell.

import {
  atMost,
  checked,
  defaultsTo,
  flag,
  integer,
  list,
  object,
  oneOf,
  type Schema,
  text,
  type ValueOf,
} from '../../../kit/api/json/json-schema.ts'
import { labelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { AGGREGATION_RULES, CELL_RULES, NAMESPACE_RULES, OBJECT_NAME_RULES, SIZES } from './cel/cel-rules.ts'

function namespace(description: string): Schema<string> {
  return checked(text(description, { maxLength: SIZES.namespace }), NAMESPACE_RULES)
}

const updateTrigger = object(
  'A pod that is created and then updated periodically, so that an idle cluster still sends events. Default: none.',
  {
    namespace: namespace('Its namespace, which must exist.'),
    name: checked(
      defaultsTo('portcullis-update-trigger', text('Its name.', { maxLength: SIZES.objectName })),
      OBJECT_NAME_RULES,
    ),
    intervalSeconds: defaultsTo(1, integer('Seconds between two writes.', 1, 3600)),
  },
  ['namespace'],
)

const aggregation = object('How the pods of the cluster are counted.', {
  disabled: defaultsTo(false, flag("The gateway does not count them: Podseidon's aggregator does.")),
  syncTime: defaultsTo(
    'ResourceVersion',
    oneOf(
      'How to determine up to which moment the pods have been seen. ResourceVersion: by the versions of the cluster itself; ' +
        'Clock: by the arrival of events; Status: by the times in the status of the pods; Annotation: by syncTimeAnnotation.',
      ['ResourceVersion', 'Clock', 'Status', 'Annotation'],
    ),
  ),
  syncTimeAnnotation: text('Annotation of pods that holds a time (RFC 3339), for syncTime Annotation.', {
    maxLength: SIZES.annotation,
  }),
  podLabelSelector: labelSelector('Only these pods are listed and counted. Default: all.'),
  updateTrigger,
})

export const POD_PROTECTION_SCHEMA = object(
  'If present, even if empty, deletions and evictions of pods are checked against PodProtectors. Default: they are not.',
  {
    cell: checked(
      text(
        'Name of the cluster in the status of PodProtectors. Clusters with the same name are one cell. Default metadata.name.',
        {
          maxLength: SIZES.objectName,
        },
      ),
      CELL_RULES,
    ),
    shadow: defaultsTo(false, flag('Evaluate, record, count and warn, but admit.')),
    failurePolicy: defaultsTo(
      'Fail',
      oneOf('What happens to a deletion that cannot be evaluated: Fail refuses it.', ['Fail', 'Ignore']),
    ),
    timeoutSeconds: defaultsTo(10, integer('Seconds that a deletion waits for its evaluation.', 1, 30)),
    excludedNamespaces: atMost(
      SIZES.namespaces,
      list('Namespaces whose pods are not protected.', namespace('A namespace.')),
    ),
    objectSelector: labelSelector('Only pods with these labels are protected. Default: all.'),
    aggregation: checked(aggregation, AGGREGATION_RULES),
  },
)

/** If present, even empty, deletions and evictions of pods are checked. */
export type PodProtection = ValueOf<typeof POD_PROTECTION_SCHEMA>
/** How the cell's pods are counted. */
export type CellAggregation = NonNullable<PodProtection['aggregation']>
export type UpdateTriggerSettings = NonNullable<CellAggregation['updateTrigger']>
