// The schema of spec.podProtection.

import { atMost, checked, flag, integer, type JsonSchema, list, object, oneOf, text } from '../kube/json-schema.ts'
import { labelSelector } from '../pod-protector/label-selector-schema.ts'
import { AGGREGATION_RULES, CELL_RULES, NAMESPACE_RULES, OBJECT_NAME_RULES, SIZES } from './cel.ts'
import type { CellAggregation, PodProtection, UpdateTrigger } from './cluster-protection.ts'
import { DEFAULT_UPDATE_TRIGGER } from './cluster-protection.ts'

function namespace(description: string): JsonSchema {
  return checked(text(description, { maxLength: SIZES.namespace }), NAMESPACE_RULES)
}

const updateTrigger: JsonSchema = object<UpdateTrigger>(
  'A pod that is made and written again and again, so that an idle cluster still sends events. Default: none.',
  {
    namespace: namespace('Its namespace; has to exist.'),
    name: checked(
      text(`Its name. Default ${DEFAULT_UPDATE_TRIGGER}.`, { maxLength: SIZES.objectName }),
      OBJECT_NAME_RULES,
    ),
    intervalSeconds: integer('Seconds between two writes. Default 1.', 1, 3600),
  },
  ['namespace'],
)

const aggregation: JsonSchema = object<CellAggregation>('How the pods of the cluster are counted.', {
  disabled: flag("The gateway does not count them: Podseidon's aggregator does. Default false."),
  syncTime: oneOf(
    'How it is known up to which moment the pods have been seen. ResourceVersion: by the versions of the cluster itself; ' +
      'Clock: when an event came; Status: by the times in the status of the pods; Annotation: by syncTimeAnnotation. ' +
      'Default ResourceVersion.',
    ['ResourceVersion', 'Clock', 'Status', 'Annotation'],
  ),
  syncTimeAnnotation: text('Annotation of pods that holds a time (RFC 3339), for syncTime Annotation.', {
    maxLength: SIZES.annotation,
  }),
  podLabelSelector: labelSelector('Only these pods are listed and counted. Default: all.'),
  updateTrigger,
})

export const POD_PROTECTION_SCHEMA: JsonSchema = object<PodProtection>(
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
    shadow: flag('Judge, record, count and warn, but let pass. Default false.'),
    failurePolicy: oneOf('What becomes of a deletion that cannot be judged: Fail refuses it. Default Fail.', [
      'Fail',
      'Ignore',
    ]),
    timeoutSeconds: integer('Seconds that a deletion waits for its judgement. Default 10.', 1, 30),
    excludedNamespaces: atMost(
      SIZES.namespaces,
      list('Namespaces whose pods are deleted without asking.', namespace('A namespace.')),
    ),
    objectSelector: labelSelector('Only pods with these labels are guarded. Default: all.'),
    aggregation: checked(aggregation, AGGREGATION_RULES),
  },
)
