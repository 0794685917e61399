// spec.scaleProtection of an UpstreamCluster: whether writes that lower a workload's replicas are checked against the PodProtectors of its pods.
// Added; KubeGateway has no equivalent.

import {
  atMost,
  checked,
  defaultsTo,
  flag,
  list,
  object,
  oneOf,
  text,
  type ValueOf,
} from '../../../kit/api/json/json-schema.ts'
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

/** If present, even empty, writes of replicas are checked, and answered with a warning that names the pods to be deleted. */
export type ScaleProtection = ValueOf<typeof SCALE_PROTECTION_SCHEMA>

/** On a workload: until this time (RFC 3339) its replicas may be lowered regardless of PodProtectors. */
export const ALLOW_UNTIL_ANNOTATION = 'scale.portcullis.io/allow-until'
