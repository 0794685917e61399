// spec.autoscaler and status.autoscaler of an UpstreamCluster: the status that the cluster's cluster-autoscaler publishes. Added.

import {
  checked,
  defaultsTo,
  integer,
  list,
  object,
  text,
  time,
  type ValueOf,
} from '../../../kit/api/json/json-schema.ts'
import { CONFIG_MAP_NAME_RULES, NAMESPACE_RULES, SIZES } from './cel/cel-rules.ts'

const statusConfigMap = object('The ConfigMap with the status of the cluster-autoscaler.', {
  namespace: checked(
    defaultsTo('kube-system', text('Its namespace.', { maxLength: SIZES.namespace })),
    NAMESPACE_RULES,
  ),
  name: checked(
    defaultsTo('cluster-autoscaler-status', text('Its name.', { maxLength: SIZES.objectName })),
    CONFIG_MAP_NAME_RULES,
  ),
})

export const AUTOSCALER_SCHEMA = object(
  'If present, even if empty, the status of the cluster-autoscaler is followed and reported. Default: it is not.',
  {
    statusConfigMap,
    staleAfterSeconds: defaultsTo(60, integer('Seconds without a write after which its status is stale.', 10, 3600)),
  },
)

const group = object(
  'A node group.',
  {
    name: text('Its name in the cluster-autoscaler.'),
    health: text('Healthy or Unhealthy.'),
    scaleUp: text('InProgress, NoActivity or Backoff.'),
    scaleUpSince: time('When scaleUp last changed.'),
    scaleDown: text('CandidatesPresent or NoCandidates.'),
    minSize: integer('Its smallest size.', 0),
    maxSize: integer('Its largest size.', 0),
    target: integer('The size that was requested from the cloud.', 0),
    registered: integer('Its nodes.', 0),
    ready: integer('Nodes that are ready.', 0),
    unready: integer('Nodes that are not ready.', 0),
    longUnregistered: integer('Instances that did not become a node in time.', 0),
    errorCode: text('Reason for the backoff, as one word.'),
    errorMessage: text('Reason for the backoff.'),
  },
  ['name'],
)

export const AUTOSCALER_REPORT_SCHEMA = object(
  'The last status of the cluster-autoscaler; the condition AutoscalerHealthy says whether it is still current.',
  {
    health: text('Healthy or Unhealthy: all nodes together.'),
    scaleUp: text('InProgress or NoActivity.'),
    scaleDown: text('CandidatesPresent or NoCandidates.'),
    groups: list('Node groups: first those in backoff, then unhealthy ones.', group),
    omittedGroups: integer('Groups beyond the limit of 50, which are not listed.', 0),
  },
)

/** If present, even empty, the cluster-autoscaler's status is followed. */
export type Autoscaler = ValueOf<typeof AUTOSCALER_SCHEMA>
/** The autoscaler's last report; conditions say whether it still holds. */
export type AutoscalerReport = ValueOf<typeof AUTOSCALER_REPORT_SCHEMA>
export type NodeGroupReport = NonNullable<AutoscalerReport['groups']>[number]
