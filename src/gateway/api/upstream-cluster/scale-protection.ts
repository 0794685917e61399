// spec.scaleProtection of an UpstreamCluster: whether writes that lower a workload's replicas are checked against the PodProtectors of its pods.
// Added; KubeGateway has no equivalent.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { SCALE_PROTECTION_SCHEMA } from './scale-protection-schema.ts'

/** If present, even empty, writes of replicas are checked, and answered with a warning that names the pods to be deleted. */
export type ScaleProtection = ValueOf<typeof SCALE_PROTECTION_SCHEMA>

/** On a workload: until this time (RFC 3339) its replicas may be lowered regardless of PodProtectors. */
export const ALLOW_UNTIL_ANNOTATION = 'scale.portcullis.io/allow-until'
