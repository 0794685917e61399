// Shared by the rows of the demo's kinds: columns as kubectl shows them for a real cluster
// (k8s.io/kubernetes/pkg/printers/internalversion/printers.go), and schemas that know which lists are merged.

import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { type JsonSchema, kubeObject, list, text, time } from '../../kit/api/json/json-schema.ts'
import type { PrinterColumn } from '../../kube/api/resource-kind.ts'
import { numberAt, textAt } from './json.ts'

export const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  description: 'When it was created.',
  jsonPath: '.metadata.creationTimestamp',
}

/** @param priority above 0: only with `-o wide` */
export function column(
  name: string,
  cell: (object: JsonObject) => unknown,
  type: PrinterColumn['type'] = 'string',
  priority = 0,
): PrinterColumn {
  return { name, type, description: '', jsonPath: '', priority, cell }
}

export function textColumn(name: string, path: string, priority = 0): PrinterColumn {
  return column(name, (one) => textAt(one, path) || '<none>', 'string', priority)
}

export function integerColumn(name: string, path: string): PrinterColumn {
  return column(name, (one) => numberAt(one, path), 'integer')
}

/** An object with these fields, and any others. */
export function openObject(description: string, properties: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  return { type: 'object', description, 'x-kubernetes-preserve-unknown-fields': true, properties }
}

/** A list whose items are identified by these fields, and merged by the first of them in strategic merge patches. */
export function listBy(keys: readonly string[], description: string, items: JsonSchema): JsonSchema {
  return { ...list(description, items), 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys }
}

export function named(description: string, more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  return { ...openObject(description, { name: text('Its name.'), ...more }), required: ['name'] }
}

const condition: JsonSchema = {
  ...openObject('One aspect of the state.', {
    type: text('Which aspect.'),
    status: text('True, False or Unknown.'),
    reason: text('Why, in one word.'),
    message: text('Why, in a sentence.'),
    lastTransitionTime: time('When the status changed last.'),
  }),
  required: ['type', 'status'],
}

export function statusWith(more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  return openObject('What has become of it.', {
    conditions: listBy(['type'], 'Aspects of the state.', condition),
    ...more,
  })
}

/** @param fields besides apiVersion, kind and metadata */
export function openKind(
  description: string,
  apiVersion: string,
  kind: string,
  fields: Readonly<Record<string, JsonSchema>>,
): JsonSchema {
  return { ...kubeObject(description, apiVersion, kind, fields), 'x-kubernetes-preserve-unknown-fields': true }
}
