// Lease (coordination.k8s.io/v1): leadership and liveness.

import { kubeObject, object, oneOf, text, time, wholeNumber } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { FieldErrors } from '../../../kit/api/validation/field-errors.ts'
import type { ResourceKind } from '../resource-kind.ts'

const spec = object('Who holds the lease, and for how long.', {
  holderIdentity: text('Who holds it now.'),
  leaseDurationSeconds: wholeNumber('Seconds after renewTime from which on others may take it.'),
  acquireTime: time('When the holder took it.'),
  renewTime: time('When the holder renewed it last.'),
  leaseTransitions: wholeNumber('How often it went from one holder to another.'),
  strategy: oneOf('How a leader is chosen where an elector outside of the candidates does it. Default: none does.', [
    'OldestEmulationVersion',
  ]),
  preferredHolder: text('Who ought to hold it instead; only with strategy.'),
})

export const LEASES: ResourceKind = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  listKind: 'LeaseList',
  plural: 'leases',
  singular: 'lease',
  shortNames: [],
  categories: [],
  namespaced: true,
  hasStatus: false,
  hasGeneration: false,
  schema: kubeObject('Lease says who leads, and since when.', 'coordination.k8s.io/v1', 'Lease', { spec }),
  columns: [
    { name: 'Holder', type: 'string', description: 'Who holds it now.', jsonPath: '.spec.holderIdentity' },
    { name: 'Age', type: 'date', description: 'When it was created.', jsonPath: '.metadata.creationTimestamp' },
  ],
  selectableFields: [],
  check(object) {
    const out = new FieldErrors()
    const given = isRecord(object['spec']) ? object['spec'] : {}
    // pkg/apis/coordination/validation
    const { leaseDurationSeconds, leaseTransitions, preferredHolder, strategy } = given
    if (typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0) {
      out.invalid('spec.leaseDurationSeconds', 'must be greater than 0', '')
    }
    if (typeof leaseTransitions === 'number' && leaseTransitions < 0) {
      out.invalid('spec.leaseTransitions', 'must be greater than or equal to 0', '')
    }
    if (typeof preferredHolder === 'string' && preferredHolder !== '' && (strategy ?? '') === '') {
      out.forbidden('spec.preferredHolder', 'may only be specified if `strategy` is defined', '')
    }
    return out.found
  },
}
