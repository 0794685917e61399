// The messages of Kubernetes' own kinds, as sent by typed clients: field numbers of the generated.proto
// files of k8s.io/api and k8s.io/apimachinery.

/**
 * The type of a field. `bytes` become base64, `json` is JSON text, `time` and `microTime` are messages of seconds and
 * nanoseconds.
 */
export type FieldType =
  | 'string'
  | 'bool'
  | 'integer'
  | 'bytes'
  | 'json'
  | 'time'
  | 'microTime'
  | MessageType
  | MessageReader

/** Decodes a message whose JSON is not an object. */
type MessageReader = (message: Buffer) => unknown

export interface MessageField {
  readonly name: string
  readonly type: FieldType
  readonly shape: 'one' | 'list' | 'map'
  /** A pointer in Go: sent only if set, so that zero has a meaning. */
  readonly optional: boolean
}

/** By field number. */
export type MessageType = ReadonlyMap<number, MessageField>

type MessageRow = readonly [number: number, name: string, type: FieldType, shape?: MessageField['shape'] | 'optional']

export function message(...rows: readonly MessageRow[]): MessageType {
  return new Map(
    rows.map(([number, name, type, shape = 'one']) => [
      number,
      { name, type, shape: shape === 'optional' ? 'one' : shape, optional: shape === 'optional' },
    ]),
  )
}

const ownerReference = message(
  [1, 'kind', 'string'],
  [3, 'name', 'string'],
  [4, 'uid', 'string'],
  [5, 'apiVersion', 'string'],
  [6, 'controller', 'bool', 'optional'],
  [7, 'blockOwnerDeletion', 'bool', 'optional'],
)

const managedFieldsEntry = message(
  [1, 'manager', 'string'],
  [2, 'operation', 'string'],
  [3, 'apiVersion', 'string'],
  [4, 'time', 'time'],
  [6, 'fieldsType', 'string'],
  [7, 'fieldsV1', 'json'],
  [8, 'subresource', 'string'],
)

export const objectMeta: MessageType = message(
  [1, 'name', 'string'],
  [2, 'generateName', 'string'],
  [3, 'namespace', 'string'],
  [4, 'selfLink', 'string'],
  [5, 'uid', 'string'],
  [6, 'resourceVersion', 'string'],
  [7, 'generation', 'integer'],
  [8, 'creationTimestamp', 'time'],
  [9, 'deletionTimestamp', 'time'],
  [10, 'deletionGracePeriodSeconds', 'integer', 'optional'],
  [11, 'labels', 'string', 'map'],
  [12, 'annotations', 'string', 'map'],
  [13, 'ownerReferences', ownerReference, 'list'],
  [14, 'finalizers', 'string', 'list'],
  [17, 'managedFields', managedFieldsEntry, 'list'],
)

export const METADATA: MessageRow = [1, 'metadata', objectMeta]

export const deleteOptions: MessageType = message(
  [1, 'gracePeriodSeconds', 'integer', 'optional'],
  [
    2,
    'preconditions',
    message([1, 'uid', 'string', 'optional'], [2, 'resourceVersion', 'string', 'optional']),
    'optional',
  ],
  [3, 'orphanDependents', 'bool', 'optional'],
  [4, 'propagationPolicy', 'string', 'optional'],
  [5, 'dryRun', 'string', 'list'],
)

const secret = message(
  METADATA,
  [2, 'data', 'bytes', 'map'],
  [3, 'type', 'string'],
  [4, 'stringData', 'string', 'map'],
  [5, 'immutable', 'bool', 'optional'],
)

const namespaceCondition = message(
  [1, 'type', 'string'],
  [2, 'status', 'string'],
  [4, 'lastTransitionTime', 'time'],
  [5, 'reason', 'string'],
  [6, 'message', 'string'],
)

const namespace = message(
  METADATA,
  [2, 'spec', message([1, 'finalizers', 'string', 'list'])],
  [3, 'status', message([1, 'phase', 'string'], [2, 'conditions', namespaceCondition, 'list'])],
)

const objectReference = message(
  [1, 'kind', 'string'],
  [2, 'namespace', 'string'],
  [3, 'name', 'string'],
  [4, 'uid', 'string'],
  [5, 'apiVersion', 'string'],
  [6, 'resourceVersion', 'string'],
  [7, 'fieldPath', 'string'],
)

const event = message(
  METADATA,
  [2, 'involvedObject', objectReference],
  [3, 'reason', 'string'],
  [4, 'message', 'string'],
  [5, 'source', message([1, 'component', 'string'], [2, 'host', 'string'])],
  [6, 'firstTimestamp', 'time'],
  [7, 'lastTimestamp', 'time'],
  [8, 'count', 'integer'],
  [9, 'type', 'string'],
  [10, 'eventTime', 'microTime'],
  [11, 'series', message([1, 'count', 'integer'], [2, 'lastObservedTime', 'microTime']), 'optional'],
  [12, 'action', 'string'],
  [13, 'related', objectReference, 'optional'],
  [14, 'reportingComponent', 'string'],
  [15, 'reportingInstance', 'string'],
)

const leaseSpec = message(
  [1, 'holderIdentity', 'string', 'optional'],
  [2, 'leaseDurationSeconds', 'integer', 'optional'],
  [3, 'acquireTime', 'microTime'],
  [4, 'renewTime', 'microTime'],
  [5, 'leaseTransitions', 'integer', 'optional'],
  [6, 'strategy', 'string', 'optional'],
  [7, 'preferredHolder', 'string', 'optional'],
)

const resourceAttributes = message(
  [1, 'namespace', 'string'],
  [2, 'verb', 'string'],
  [3, 'group', 'string'],
  [4, 'version', 'string'],
  [5, 'resource', 'string'],
  [6, 'subresource', 'string'],
  [7, 'name', 'string'],
)

const accessReviewSpec = message(
  [1, 'resourceAttributes', resourceAttributes, 'optional'],
  [2, 'nonResourceAttributes', message([1, 'path', 'string'], [2, 'verb', 'string']), 'optional'],
)

/** By `apiVersion/kind`. */
export type Messages = ReadonlyMap<string, MessageType>

/** The status of a review is set by the server, and not decoded. */
export const MESSAGES: Messages = new Map([
  ['v1/Secret', secret],
  ['v1/Namespace', namespace],
  ['v1/Event', event],
  ['coordination.k8s.io/v1/Lease', message(METADATA, [2, 'spec', leaseSpec])],
  ['authentication.k8s.io/v1/SelfSubjectReview', message(METADATA)],
  ['authorization.k8s.io/v1/SelfSubjectAccessReview', message(METADATA, [2, 'spec', accessReviewSpec])],
  [
    'authorization.k8s.io/v1/SelfSubjectRulesReview',
    message(METADATA, [2, 'spec', message([1, 'namespace', 'string'])]),
  ],
])

/** undefined = not sent as protobuf. DeleteOptions have the version of the deleted object. */
export function messageType(messages: Messages, apiVersion: string, kind: string): MessageType | undefined {
  return kind === 'DeleteOptions' ? deleteOptions : messages.get(`${apiVersion}/${kind}`)
}
