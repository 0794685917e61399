// Whatever is sent to the registry: an object, a refusal, and never anything else.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { openSqliteStore } from '../../src/apiserver/io/store/store.ts'
import { decodeBody } from '../../src/apiserver/objects/write-object-decode.ts'
import type { WriteCall } from '../../src/apiserver/registry/context.ts'
import type { RegistryPatchType } from '../../src/apiserver/registry/patch.ts'
import { Registry } from '../../src/apiserver/registry/registry.ts'
import { StatusError } from '../../src/kube/api/status.ts'
import { nodePemChecks } from '../../src/pki/io/pem-checks.ts'
import { SCHEME } from '../../src/program/api/scheme.ts'

const FIELDS = [
  'apiVersion',
  'kind',
  'metadata',
  'name',
  'namespace',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'managedFields',
  'resourceVersion',
  'uid',
  'deletionTimestamp',
  'spec',
  'status',
  'conditions',
  'servers',
  'endpoint',
  'secureServing',
  'serverNames',
  'addresses',
  'ips',
  'dispatchPolicies',
  'rules',
  'flowControl',
  'degrade',
  'data',
  'stringData',
  'type',
  'selector',
  'minAvailable',
  'op',
  'path',
  'from',
  'value',
  '$patch',
  '$retainKeys',
  '$deleteFromPrimitiveList/finalizers',
  '__proto__',
  'constructor',
  'toString',
]
const PATCHES: readonly RegistryPatchType[] = [
  'application/merge-patch+json',
  'application/json-patch+json',
  'application/apply-patch+yaml',
  'application/strategic-merge-patch+json',
]

const anything = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, -1, 1.5, 1e300, '', 'x', 'a', 'v1', '/metadata/name', 'add', 'test', 'replace'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...FIELDS), tie('value'), { maxKeys: 5, noNullPrototype: true }),
  ),
})).value

test('bodies of every shape', () => {
  const store = openSqliteStore({ file: ':memory:', key: undefined })
  const registry = new Registry({
    store,
    kinds: SCHEME,
    pem: nodePemChecks,
    now: () => Date.now(),
    uuid: randomUUID,
    random: Math.random,
  })
  const call = (): WriteCall => ({
    options: { dryRun: false, fieldValidation: 'Warn', manager: 'fuzz', force: true },
    warnings: [],
  })
  const attempt = (step: () => unknown): void => {
    try {
      step()
    } catch (error) {
      assert.ok(error instanceof StatusError, error instanceof Error ? error.stack : String(error))
      assert.notEqual(error.reason, 'InternalError')
    }
  }
  try {
    fc.assert(
      fc.property(
        fc.constantFrom(...SCHEME),
        anything,
        anything,
        fc.constantFrom(...PATCHES),
        (kind, body, patch, type) => {
          const apiVersion = kind.group === '' ? kind.version : `${kind.group}/${kind.version}`
          const namespace = kind.namespaced ? 'default' : ''
          const at = { namespace, name: 'x' }
          const fields = typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {}
          const object = { ...fields, apiVersion, kind: kind.kind, metadata: { name: 'x' } }
          const incoming = (value: unknown) => decodeBody(JSON.stringify(value), 'json', kind)
          attempt(() => registry.create(kind, namespace, incoming(body), call()))
          attempt(() => registry.create(kind, namespace, incoming(object), call()))
          attempt(() => registry.patch(kind, at, '', 'application/apply-patch+yaml', incoming(object), call()))
          attempt(() => registry.patch(kind, at, '', type, incoming(patch), call()))
          attempt(() => registry.patch(kind, at, kind.hasStatus ? 'status' : '', type, incoming(patch), call()))
          attempt(() => registry.update(kind, at, '', incoming(patch), call()))
        },
      ),
      { numRuns: 400 },
    )
    // What came of it can still be read.
    for (const kind of SCHEME) {
      for (const { object } of store.list(kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`, {
        namespace: '',
      })) {
        assert.equal(object['kind'], kind.kind)
      }
    }
  } finally {
    store.close()
  }
})
