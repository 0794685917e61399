// The schema of spec.podProtection.

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
} from '../kube/json-schema.ts'
import { labelSelector } from '../pod-protector/label-selector-schema.ts'
import { AGGREGATION_RULES, CELL_RULES, NAMESPACE_RULES, OBJECT_NAME_RULES, SIZES } from './cel.ts'
import type { CellAggregation, PodProtection, UpdateTrigger } from './cluster-protection.ts'

function namespace(description: string): Schema<string> {
  return checked(text(description, { maxLength: SIZES.namespace }), NAMESPACE_RULES)
}

const updateTrigger = object<UpdateTrigger>(
  'A pod that is made and written again and again, so that an idle cluster still sends events. Default: none.',
  {
    namespace: namespace('Its namespace; has to exist.'),
    name: checked(
      defaultsTo('portcullis-update-trigger', text('Its name.', { maxLength: SIZES.objectName })),
      OBJECT_NAME_RULES,
    ),
    intervalSeconds: defaultsTo(1, integer('Seconds between two writes.', 1, 3600)),
  },
  ['namespace'],
)

const aggregation = object<CellAggregation>('How the pods of the cluster are counted.', {
  disabled: defaultsTo(false, flag("The gateway does not count them: Podseidon's aggregator does.")),
  syncTime: defaultsTo(
    'ResourceVersion',
    oneOf(
      'How it is known up to which moment the pods have been seen. ResourceVersion: by the versions of the cluster itself; ' +
        'Clock: when an event came; Status: by the times in the status of the pods; Annotation: by syncTimeAnnotation.',
      ['ResourceVersion', 'Clock', 'Status', 'Annotation'],
    ),
  ),
  syncTimeAnnotation: text('Annotation of pods that holds a time (RFC 3339), for syncTime Annotation.', {
    maxLength: SIZES.annotation,
  }),
  podLabelSelector: labelSelector('Only these pods are listed and counted. Default: all.'),
  updateTrigger,
})

export const POD_PROTECTION_SCHEMA: Schema<PodProtection> = object<PodProtection>(
  'When it is there, even empty: deletions and evictions of pods are judged by PodProtectors. Default: they are not.',
  {
    cell: checked(
      text(
        'Name of the cluster in the status of PodProtectors. Clusters with one name are one. Default metadata.name.',
        {
          maxLength: SIZES.objectName,
        },
      ),
      CELL_RULES,
    ),
    shadow: defaultsTo(false, flag('Judge, record, count and warn, but let pass.')),
    failurePolicy: defaultsTo(
      'Fail',
      oneOf('What becomes of a deletion that cannot be judged: Fail refuses it.', ['Fail', 'Ignore']),
    ),
    timeoutSeconds: defaultsTo(10, integer('Seconds that a deletion waits for its judgement.', 1, 30)),
    excludedNamespaces: atMost(
      SIZES.namespaces,
      list('Namespaces whose pods are deleted without asking.', namespace('A namespace.')),
    ),
    objectSelector: labelSelector('Only pods with these labels are guarded. Default: all.'),
    aggregation: checked(aggregation, AGGREGATION_RULES),
  },
)
