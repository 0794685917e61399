// spec.scaleProtection of an UpstreamCluster: whether writes that lower the replicas of a workload are checked against the PodProtectors
// of its pods. Added; KubeGateway has nothing like it.

import type { ValueOf } from '../../../kit/api/json/json-schema.ts'
import type { SCALE_PROTECTION_SCHEMA } from './scale-protection-schema.ts'

/** Present, even when empty: writes of replicas are checked, and answered with a warning that names the pods that go. */
export type ScaleProtection = ValueOf<typeof SCALE_PROTECTION_SCHEMA>

/** On a workload: until then (RFC 3339) its replicas may be lowered whatever PodProtectors say. */
export const ALLOW_UNTIL_ANNOTATION = 'scale.portcullis.io/allow-until'
