// Namespace (v1).

import { atomic, byKey, kubeObject, list, object, oneOf, text, time } from '../../../kit/api/json/json-schema.ts'
import type { ResourceKind } from '../resource-kind.ts'

const condition = object(
  'Something that the deletion of the namespace waits for.',
  {
    type: text('What the condition is about.'),
    status: text('Whether it holds: True, False or Unknown.'),
    lastTransitionTime: time('When the status last changed.'),
    reason: text('Why it changed, as one word for programs.'),
    message: text('Why it changed, as a sentence for people.'),
  },
  ['type', 'status'],
)

export const NAMESPACES: ResourceKind = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  listKind: 'NamespaceList',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  categories: [],
  namespaced: false,
  hasStatus: true,
  hasGeneration: false,
  schema: kubeObject('Namespace is a scope for names: namespaced objects belong to exactly one.', 'v1', 'Namespace', {
    spec: object('How the namespace behaves.', {
      finalizers: atomic(list('What has to be done before the namespace can go away.', text('A finalizer.'))),
    }),
    status: object('What has become of it.', {
      phase: oneOf('Active, or Terminating while its objects are deleted.', ['Active', 'Terminating']),
      conditions: byKey('type', list('What is known about its deletion.', condition)),
    }),
  }),
  columns: [
    { name: 'Status', type: 'string', description: 'The status of the namespace', jsonPath: '.status.phase' },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: ['status.phase', 'name'],
  check: () => [],
}
