// metav1.ObjectMeta, as shown by `kubectl explain KIND.metadata` (apimachinery/pkg/apis/meta/v1/types.go).

import {
  also,
  atomic,
  byKey,
  flag,
  type JsonSchema,
  list,
  map,
  object,
  text,
  time,
  wholeNumber,
} from '../../kit/api/json/json-schema.ts'

const ownerReference: JsonSchema = atomic(
  object(
    'OwnerReference identifies an owning object: in the same namespace as the dependent one, or cluster-scoped.',
    {
      apiVersion: text('API version of the owner.'),
      kind: text('Kind of the owner.'),
      name: text('Name of the owner.'),
      uid: text('UID of the owner.'),
      controller: flag('Whether this owner is the managing controller.'),
      blockOwnerDeletion: flag(
        'Whether an owner that is deleted in the foreground has to wait until this reference is removed. Default false.',
      ),
    },
    ['apiVersion', 'kind', 'name', 'uid'],
  ),
)

const managedFieldsEntry = object('ManagedFieldsEntry says which fields a manager has set.', {
  manager: text('Name of the program that manages these fields.'),
  operation: text('How they were set: Apply or Update.'),
  apiVersion: text('Version of the resource that the fields belong to, `group/version`.'),
  time: time('When the entry was added, or a field was added or changed in it.'),
  fieldsType: text('Format of the fields. Always FieldsV1.'),
  fieldsV1: {
    type: 'object',
    description:
      'The fields, as a tree in which `f:<name>` is a field or key, `k:<keys>` a list item by its key fields, `v:<value>` one by its value, `i:<index>` one by its place, and `.` the field itself.',
  },
  subresource: text('The subresource through which the object was changed; empty for the main resource.'),
})

export const OBJECT_META_SCHEMA: JsonSchema = object(
  'ObjectMeta is metadata that all persisted resources must have, which includes all objects users must create.',
  {
    name: text(
      'Name of the object, unique in its namespace. Required when creating, unless generateName is given. Cannot be updated.',
    ),
    generateName: text(
      'Prefix of a name that the server generates when `name` is not given: five random characters follow. If the name exists already, the response is 409.',
    ),
    namespace: text(
      'Namespace in which the name is unique. Empty for cluster-scoped objects; for others empty means "default". Must be a DNS label. Cannot be updated.',
    ),
    selfLink: text('Deprecated: a legacy read-only field that is no longer populated by the system.'),
    uid: text(
      'Unique in time and space: an object that is deleted and created again gets another one. Populated by the system. Read-only.',
    ),
    resourceVersion: text(
      'Version of the object in the store. Clients send it back unmodified: an update with an old one is refused with 409. Populated by the system. Read-only.',
    ),
    generation: wholeNumber('Counts the changes of the desired state. Populated by the system. Read-only.', 'int64'),
    creationTimestamp: time('When the server created the object, in UTC. Populated by the system. Read-only.'),
    deletionTimestamp: time(
      'When deletion was requested; the object is removed once `finalizers` is empty. Populated by the system. Read-only.',
    ),
    deletionGracePeriodSeconds: wholeNumber(
      'Seconds that the object has to end gracefully. Only set together with deletionTimestamp. Read-only.',
      'int64',
    ),
    labels: map(
      'Keys and values to organize and select objects.',
      text('Value of a label: at most 63 letters, digits, `-`, `_` and `.`.'),
    ),
    annotations: map(
      'Keys and values that tools store with the object. Objects cannot be selected by them.',
      text('Value of an annotation.'),
    ),
    ownerReferences: byKey(
      'uid',
      list('Objects that this one depends on. At most one of them is its managing controller.', ownerReference),
    ),
    finalizers: also(
      { 'x-kubernetes-list-type': 'set' },
      list(
        'Names of components that must act before the object is removed. Each removes its own; none can be added once deletion was requested.',
        text('`domain/name`.'),
      ),
    ),
    managedFields: atomic(
      list(
        'Which manager set which fields: the basis of server-side apply. Maintained by the server.',
        managedFieldsEntry,
      ),
    ),
  },
)
