// Schemas of everything in requests and responses except the objects themselves (apimachinery/pkg/apis/meta/v1/types.go).

import { type JsonSchema, list, object, text, wholeNumber } from '../../kit/api/json/json-schema.ts'
import { OBJECT_META_SCHEMA } from '../objects/object-meta-schema.ts'

export const META_PREFIX = 'io.k8s.apimachinery.pkg.apis.meta.v1.'

const listMeta = object(
  'ListMeta describes metadata that synthetic resources must have, including lists and various status objects.',
  {
    resourceVersion: text('Version of the store that the list shows: a watch from here misses nothing. Read-only.'),
    continue: text(
      'Opaque token that the next request passes to get the items that follow. Absent when there are none.',
    ),
    remainingItemCount: wholeNumber('How many items follow, where that is known.', 'int64'),
    selfLink: text('Deprecated: a legacy read-only field that is no longer populated by the system.'),
  },
)

const deleteOptions = object('DeleteOptions may be provided when deleting an API object.', {
  apiVersion: text('Version of the schema of these options.'),
  kind: text('DeleteOptions.'),
  gracePeriodSeconds: wholeNumber('Seconds before the object is deleted. Zero means at once.', 'int64'),
  preconditions: object('Preconditions; if one does not hold, the answer is 409.', {
    uid: text('The UID of the object.'),
    resourceVersion: text('The resourceVersion of the object.'),
  }),
  orphanDependents: { type: 'boolean', description: 'Deprecated: use propagationPolicy.' },
  propagationPolicy: text('What happens to dependents: Orphan, Background or Foreground.'),
  dryRun: list('`All`: everything is checked, nothing is stored.', text('All.')),
})

const cause = object('One cause of a failure.', {
  reason: text('The cause in one word, for programs.'),
  message: text('The cause in words, for people.'),
  field: text('The field at fault, such as `items[0].name`.'),
})

const details = object('More about the reason.', {
  name: text('Name of the object concerned.'),
  group: text('Its API group.'),
  kind: text('Its kind, or its resource.'),
  uid: text('Its UID.'),
  causes: list('All causes, where there are several.', cause),
  retryAfterSeconds: wholeNumber('Seconds after which the request may be sent again.'),
})

const status = object('Status is a return value for calls that do not return other objects.', {
  apiVersion: text('v1.'),
  kind: text('Status.'),
  metadata: listMeta,
  status: text('Success or Failure.'),
  message: text('What happened, for people.'),
  reason: text('Why it failed, in one word for programs.'),
  details,
  code: wholeNumber('The HTTP status code that goes with it.'),
})

/** Without META_PREFIX. */
export const META_SCHEMAS: Readonly<
  Record<'ObjectMeta' | 'ListMeta' | 'DeleteOptions' | 'Status' | 'Patch', JsonSchema>
> = {
  ObjectMeta: OBJECT_META_SCHEMA,
  ListMeta: listMeta,
  DeleteOptions: deleteOptions,
  Status: status,
  Patch: {
    type: 'object',
    description: 'Patch is the body of a PATCH request, in the form that its Content-Type says.',
  },
}
