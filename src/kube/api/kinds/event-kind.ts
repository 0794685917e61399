// Event (v1): what happened to an object.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import {
  atomic,
  type JsonSchema,
  kubeObject,
  object,
  text,
  time,
  wholeNumber,
} from '../../../kit/api/json/json-schema.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import { FieldErrors } from '../../../kit/api/validation/field-errors.ts'
import type { ResourceKind } from '../resource-kind.ts'

function reference(description: string): JsonSchema {
  const schema = object(description, {
    kind: text('Its kind.'),
    namespace: text('Its namespace; empty for cluster-scoped objects.'),
    name: text('Its name.'),
    uid: text('Its uid.'),
    apiVersion: text('The version of its schema.'),
    resourceVersion: text('The version of the object that was seen.'),
    fieldPath: text('The part of it that is meant, such as spec.containers{name}.'),
  })
  return atomic(schema)
}

const FIELDS = {
  involvedObject: reference('The object that it happened to.'),
  reason: text('Why, in one CamelCase word for programs.'),
  message: text('What happened, in a sentence for people.'),
  source: object('Who reports it.', {
    component: text('The program.'),
    host: text('The node that the program runs on.'),
  }),
  firstTimestamp: time('When it happened first.'),
  lastTimestamp: time('When it happened last.'),
  count: wholeNumber('How often it happened.'),
  type: text('Normal or Warning.'),
  eventTime: time('When it was seen first, to the microsecond.'),
  series: object('The series that this event stands for, if any.', {
    count: wholeNumber('How often it happened until lastObservedTime.'),
    lastObservedTime: time('When it happened last.'),
  }),
  action: text('What was done, or failed.'),
  related: reference('A second object that has a part in it.'),
  reportingComponent: text('The controller that reports it, such as kubernetes.io/kubelet.'),
  reportingInstance: text('Which instance of the controller.'),
}

export const EVENTS: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Event',
  listKind: 'EventList',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  categories: [],
  namespaced: true,
  hasStatus: false,
  hasGeneration: false,
  schema: kubeObject('Event says what happened to an object, and how often.', 'v1', 'Event', FIELDS, [
    'involvedObject',
  ]),
  // The event table begins with a time and has the name last.
  columns: [
    {
      name: 'Last Seen',
      type: 'date',
      description: 'When it happened last.',
      jsonPath: '.lastTimestamp',
      cell: lastSeen,
    },
    { name: 'Type', type: 'string', description: 'Normal or Warning.', jsonPath: '.type' },
    { name: 'Reason', type: 'string', description: 'Why, in one word.', jsonPath: '.reason' },
    {
      name: 'Object',
      type: 'string',
      description: 'What it happened to.',
      jsonPath: '.involvedObject.name',
      cell: involved,
    },
    wide('Subobject', 'The part of the object.', '.involvedObject.fieldPath'),
    { ...wide('Source', 'Who reports it.', '.source.component'), cell: source },
    {
      name: 'Message',
      type: 'string',
      description: 'What happened.',
      jsonPath: '.message',
      cell: (event) => textOf(event['message']).trim(),
    },
    { ...wide('First Seen', 'When it happened first.', '.firstTimestamp'), type: 'date', cell: firstSeen },
    { ...wide('Count', 'How often it happened.', '.count'), cell: count },
    { ...wide('Name', 'The name of the event.', '.metadata.name'), format: 'name' },
  ],
  selectableFields: [
    'involvedObject.kind',
    'involvedObject.namespace',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
    'reason',
    'reportingComponent',
    'source',
    'type',
  ],
  check: checkEvent,
}

function wide(name: string, description: string, jsonPath: string): ResourceKind['columns'][number] {
  return { name, type: 'string', description, jsonPath, priority: 1 }
}

/** legacyValidateEvent (pkg/apis/core/validation/events.go). */
function checkEvent(event: JsonObject): ReturnType<ResourceKind['check']> {
  const out = new FieldErrors()
  const metadata = isRecord(event['metadata']) ? event['metadata'] : {}
  const involved = isRecord(event['involvedObject']) ? event['involvedObject'] : {}
  const namespace = metadata['namespace'] ?? ''
  const its = involved['namespace'] ?? ''
  const isNew = typeof event['eventTime'] === 'string'
  const fits = its === '' ? ['', 'default', ...(isNew ? ['kube-system'] : [])].includes(String(namespace)) : true
  if (!fits || (its !== '' && !isNew && its !== namespace)) {
    out.invalid('involvedObject.namespace', 'does not match event.namespace', '')
  }
  if (!isNew) return out.found
  for (const [field, limit] of REQUIRED_WITH_TIME) {
    const value = event[field] ?? ''
    if (value === '') out.required(field, 'is required', '')
    else if (typeof value === 'string' && value.length > limit) {
      out.invalid(field, `can have at most ${limit} characters`, '')
    }
  }
  if (typeof event['message'] === 'string' && event['message'].length > MAX_MESSAGE) {
    out.invalid('message', `can have at most ${MAX_MESSAGE} characters`, '')
  }
  return out.found
}

const MAX_MESSAGE = 1024
const REQUIRED_WITH_TIME = [
  ['reportingComponent', 317],
  ['reportingInstance', 128],
  ['action', 128],
  ['reason', 128],
] as const

// Cells as kubectl shows them for a real cluster (k8s.io/kubernetes/pkg/printers/internalversion/printers.go).

function firstSeen(event: JsonObject): unknown {
  return event['firstTimestamp'] ?? event['eventTime'] ?? null
}

function lastSeen(event: JsonObject): unknown {
  return recordOf(event['series'])['lastObservedTime'] ?? event['lastTimestamp'] ?? firstSeen(event)
}

function count(event: JsonObject): number {
  return numberAt(recordOf(event['series']), 'count') ?? numberAt(event, 'count') ?? 1
}

function involved(event: JsonObject): string {
  const target = recordOf(event['involvedObject'])
  const kind = textOf(target['kind']).toLowerCase()
  const name = textOf(target['name'])
  return name === '' ? kind : `${kind}/${name}`
}

function source(event: JsonObject): string {
  const { component, host } = recordOf(event['source'])
  const program = String(component || event['reportingComponent'] || '')
  const instance = String(host || event['reportingInstance'] || '')
  return instance === '' ? program : `${program}, ${instance}`
}

function numberAt(object: JsonObject, key: string): number | undefined {
  const value = object[key]
  return typeof value === 'number' && value !== 0 ? value : undefined
}
