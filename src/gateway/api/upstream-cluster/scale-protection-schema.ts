// The schema of spec.scaleProtection.

import { atMost, checked, defaultsTo, flag, list, object, oneOf, text } from '../../../kit/api/json/json-schema.ts'
import { labelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { NAMESPACE_RULES, SIZES } from './cel/cel-rules.ts'

export const SCALE_PROTECTION_SCHEMA = object(
  'When present, even if empty, writes that lower the replicas of a workload are checked against the PodProtectors of its pods. ' +
    'Default: they are not.',
  {
    shadow: defaultsTo(false, flag('Evaluate, count and warn, but let pass.')),
    failurePolicy: defaultsTo(
      'Ignore',
      oneOf('What happens to a scale-down that cannot be evaluated: Fail refuses it.', ['Fail', 'Ignore']),
    ),
    excludedNamespaces: atMost(
      SIZES.namespaces,
      list(
        'Namespaces whose workloads are not checked.',
        checked(text('A namespace.', { maxLength: SIZES.namespace }), NAMESPACE_RULES),
      ),
    ),
    objectSelector: labelSelector('Only workloads with these labels are checked. Default: all.'),
  },
)
