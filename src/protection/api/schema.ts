// The schema of PodProtector: Podseidon's own (chart/crds of kubewharf/podseidon), every field described.

import {
  byKey,
  defaultsTo,
  flag,
  type JsonSchema,
  kubeObject,
  list,
  MAX_INT32,
  object,
  type Schema,
  text,
  time,
  wholeNumber,
} from '../../kit/api/json/json-schema.ts'
import { labelSelector } from '../../kit/api/validation/label-selector-schema.ts'

export const POD_PROTECTOR_GROUP = 'podseidon.kubewharf.io'
export const POD_PROTECTOR_VERSION = 'v1alpha1'
export const POD_PROTECTOR_API_VERSION = 'podseidon.kubewharf.io/v1alpha1'
export const POD_PROTECTOR_KIND = 'PodProtector'

/** A bucket without a counter stands for one pod. */
export const DEFAULT_COUNTER = 1

/** A non-negative int32, as in Podseidon's schema. */
function count(description: string): Schema<number> {
  return { ...wholeNumber(description), minimum: 0, maximum: MAX_INT32 }
}

export const POD_PROTECTOR_SPEC_SCHEMA = object(
  'Which pods are protected, and how many of them must stay available.',
  {
    minAvailable: count('No available pod may be deleted while this many, or fewer, are available.'),
    minReadySeconds: wholeNumber('Seconds that a pod must be ready without interruption to count as available.'),
    selector: labelSelector('The pods that are protected. Empty: all pods of the namespace.'),
    aggregationSelector: labelSelector('The pods that are counted: at least those of selector. Default: selector.'),
    admissionHistoryConfig: object('Overrides settings of the gateway for this object.', {
      maxConcurrentLag: wholeNumber('Maximum admitted deletions that have not been observed yet. 0 = no limit.'),
      compactThreshold: wholeNumber(
        'Maximum separate entries for deletions, beyond which old ones are merged; at least 1.',
      ),
      aggregationRateMillis: wholeNumber('Milliseconds from an event of a pod to the next count.'),
    }),
  },
  ['minAvailable', 'minReadySeconds', 'selector'],
)

const aggregation = object(
  'The last count of the pods of the cell.',
  {
    totalReplicas: count('Pods that are not being terminated.'),
    availableReplicas: count('Pods that have been ready for minReadySeconds.'),
    readyReplicas: wholeNumber('Pods that are ready.'),
    scheduledReplicas: wholeNumber('Pods that have a node.'),
    runningReplicas: wholeNumber('Pods in phase Running.'),
    // With microseconds.
    lastEventTime: time('Time of the last event that was counted.'),
    // Added, as is the next field. Absent: the skew is unknown.
    resourceVersion: text('The resourceVersion of the cell when its pods were counted.'),
    clockSkewMillis: wholeNumber(
      'How far the clock of the cell was ahead of that of the aggregator; negative: behind.',
    ),
  },
  ['totalReplicas', 'availableReplicas'],
)

const bucket = object(
  'One admitted deletion, or several that were merged.',
  {
    startTime: time('When it was admitted; if several, the first.'),
    podName: text('The pod, if there is only one. Not always kept.'),
    podUID: text('The uid of the pod, if there is only one.'),
    endTime: time('When the last of several was admitted.'),
    // 0: the pod is not counted as available, and must not become so.
    counter: defaultsTo(DEFAULT_COUNTER, wholeNumber('How many fewer pods will be available than were counted.')),
    // Added, as is the next field. A snapshot at least this new without the pod proves that it is gone.
    resourceVersion: text('The resourceVersion of the pod as it was admitted; if there are several, the greatest.'),
    // The remainder of `counter` has no known uid.
    podUIDs: list('The uids of the pods of several merged deletions.', text('The uid of a pod.')),
  },
  ['startTime'],
)

const cell = object(
  'A cell: the pods of one list and watch.',
  {
    cellID: text('The name of the cell.'),
    aggregation,
    admissionHistory: object('Admitted deletions that are not yet counted.', {
      buckets: list('The deletions, by time.', bucket),
    }),
    // Added.
    stale: flag('The cell has not reported for too long, so its pods do not count.'),
  },
  ['cellID'],
)

const summary = object(
  'All cells together, for people.',
  {
    totalReplicas: wholeNumber('Pods that are not being terminated.'),
    aggregatedAvailableReplicas: wholeNumber('Available pods as they were counted.'),
    estimatedAvailableReplicas: wholeNumber('Available pods less the deletions admitted since.'),
    maxLatencyMillis: wholeNumber('Milliseconds by which the slowest cell is behind its admissions.', 'int64'),
    aggregatedReady: wholeNumber('Ready pods as they were counted.'),
    aggregatedScheduled: wholeNumber('Pods with a node as they were counted.'),
    aggregatedRunning: wholeNumber('Pods in phase Running as they were counted.'),
  },
  ['totalReplicas', 'aggregatedAvailableReplicas', 'estimatedAvailableReplicas'],
)

export const POD_PROTECTOR_STATUS_SCHEMA = object(
  'Counted pods and admitted deletions.',
  {
    cells: byKey('cellID', list('Each cell.', cell)),
    summary,
  },
  ['cells', 'summary'],
)

export const POD_PROTECTOR_SCHEMA: JsonSchema = kubeObject(
  'PodProtector keeps pods of a workload available: deletions that would leave too few are refused.',
  POD_PROTECTOR_API_VERSION,
  POD_PROTECTOR_KIND,
  { spec: POD_PROTECTOR_SPEC_SCHEMA, status: POD_PROTECTOR_STATUS_SCHEMA },
  ['spec'],
)
