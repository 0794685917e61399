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
import { DEFAULT_COUNTER, POD_PROTECTOR_API_VERSION, POD_PROTECTOR_KIND } from './names.ts'

/** A non-negative int32, as in Podseidon's schema. */
function count(description: string): Schema<number> {
  return { ...wholeNumber(description), minimum: 0, maximum: MAX_INT32 }
}

export const POD_PROTECTOR_SPEC_SCHEMA = object(
  'Which pods are protected, and how many of them must stay available.',
  {
    minAvailable: count('No available pod is deleted when this many, or fewer, are available.'),
    minReadySeconds: wholeNumber('Seconds that a pod has to be ready without interruption to count as available.'),
    selector: labelSelector('The pods that are protected. Empty: all of the namespace.'),
    aggregationSelector: labelSelector('The pods that are counted: at least those of selector. Default: selector.'),
    admissionHistoryConfig: object('Overrides settings of the gateway for this object.', {
      maxConcurrentLag: wholeNumber('Deletions that may be let through before they are seen to happen. 0 = no limit.'),
      compactThreshold: wholeNumber('How many single deletions are remembered before old ones are joined; at least 1.'),
      aggregationRateMillis: wholeNumber('Milliseconds from an event of a pod until it is counted.'),
    }),
  },
  ['minAvailable', 'minReadySeconds', 'selector'],
)

const aggregation = object(
  'The pods of the cell as they were counted last.',
  {
    totalReplicas: count('Pods that are not being terminated.'),
    availableReplicas: count('Pods that have been ready for minReadySeconds.'),
    readyReplicas: wholeNumber('Pods that are ready.'),
    scheduledReplicas: wholeNumber('Pods that have a node.'),
    runningReplicas: wholeNumber('Pods in phase Running.'),
    // With microseconds.
    lastEventTime: time('When the last event that was counted happened.'),
    // Added, as is the next field. Absent: the skew is unknown.
    resourceVersion: text('The resourceVersion of the cell when its pods were counted.'),
    clockSkewMillis: wholeNumber(
      'By how much the clock of the cell was ahead of that of the aggregator; negative: behind.',
    ),
  },
  ['totalReplicas', 'availableReplicas'],
)

const bucket = object(
  'One deletion that was let through, or several that were joined.',
  {
    startTime: time('When it was let through; of several, the first.'),
    podName: text('The pod, where it is only one. Not always kept.'),
    podUID: text('The uid of the pod, where it is only one.'),
    endTime: time('When the last one was let through, of several.'),
    // 0: the pod is not counted as available, and must not become so.
    counter: defaultsTo(DEFAULT_COUNTER, wholeNumber('How many fewer pods will be available than were counted.')),
    // Added, as is the next field. A snapshot at least this new without the pod proves that it is gone.
    resourceVersion: text('The resourceVersion of the pod as it was admitted; if there are several, the greatest.'),
    // The remainder of `counter` has no known uid.
    podUIDs: list('The uids of the pods, of several that were joined.', text('The uid of a pod.')),
  },
  ['startTime'],
)

const cell = object(
  'A cell: the pods of one list and watch.',
  {
    cellID: text('The name of the cell.'),
    aggregation,
    admissionHistory: object('Deletions let through and not yet counted.', {
      buckets: list('By time.', bucket),
    }),
    // Added.
    stale: flag('The cell has not reported for too long, so its pods do not count.'),
  },
  ['cellID'],
)

const summary = object(
  'All cells together. For people.',
  {
    totalReplicas: wholeNumber('Pods that are not being terminated.'),
    aggregatedAvailableReplicas: wholeNumber('Available pods as they were counted.'),
    estimatedAvailableReplicas: wholeNumber('Available pods less the deletions let through since.'),
    maxLatencyMillis: wholeNumber('Milliseconds by which the slowest cell is behind its admissions.', 'int64'),
    aggregatedReady: wholeNumber('Ready pods as they were counted.'),
    aggregatedScheduled: wholeNumber('Pods with a node as they were counted.'),
    aggregatedRunning: wholeNumber('Pods in phase Running as they were counted.'),
  },
  ['totalReplicas', 'aggregatedAvailableReplicas', 'estimatedAvailableReplicas'],
)

export const POD_PROTECTOR_STATUS_SCHEMA = object(
  'What has been counted and let through.',
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
