import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../kit/api/json/json-schema.ts'
import { createSchemaCheck } from '../../kit/api/validation/schema-errors.ts'
import { EVENTS } from '../../kube/api/kinds/event-kind.ts'
import { LEASES } from '../../kube/api/kinds/lease-kind.ts'
import { SECRETS } from '../../kube/api/kinds/secret-kind.ts'
import { apiVersionOf, type ResourceKind } from '../../kube/api/resource-kind.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { POD_PROTECTORS } from '../../protection/api/pod-protector-kind.ts'
import { SCHEME } from './scheme.ts'

function errorsOf(kind: ResourceKind, object: JsonObject, before?: JsonObject): string[] {
  return kind.check(object, before, nodePemChecks).map(({ severity, path }) => `${severity} ${path}`)
}

test('every field of every kind is described, and the schemas are structural', () => {
  let fields = 0
  const visit = (schema: JsonSchema, path: string): void => {
    if (path.endsWith('.metadata')) return
    fields++
    assert.ok(schema.description, `${path} has no description`)
    assert.equal(schema.type === 'array', schema.items !== undefined, path)
    const isMap = schema.additionalProperties !== undefined
    assert.equal(schema.type === 'object', isMap !== (schema.properties !== undefined), path)
    for (const name of schema.required ?? []) assert.ok(schema.properties?.[name], `${path}.${name}`)
    if (schema.items !== undefined) visit(schema.items, `${path}[]`)
    if (schema.additionalProperties !== undefined) visit(schema.additionalProperties, `${path}[*]`)
    for (const [name, property] of Object.entries(schema.properties ?? {})) visit(property, `${path}.${name}`)
  }
  for (const kind of SCHEME) {
    visit(kind.schema, kind.kind)
    assert.equal(kind.schema.properties?.['status'] !== undefined, kind.hasStatus, kind.kind)
  }
  assert.ok(fields > 200, `${fields}`)
})

test('a schema can be compiled, and every column points at a field of it', () => {
  for (const kind of SCHEME) {
    createSchemaCheck(kind.schema)
    for (const { name, jsonPath } of kind.columns) {
      if (jsonPath.startsWith('.metadata.')) continue
      let at: JsonSchema | undefined = kind.schema
      for (const part of jsonPath
        .replace(/\[.*\]/, '')
        .split('.')
        .slice(1)) {
        const step: JsonSchema | undefined = at?.items ?? at
        at = step?.properties?.[part]
      }
      assert.ok(at, `${kind.kind} ${name} ${jsonPath}`)
    }
  }
})

test('no JSON value makes a check or a search for conflicts throw', () => {
  for (const kind of SCHEME) {
    fc.assert(
      fc.property(fc.object({ maxDepth: 4 }), fc.object(), (spec, metadata) => {
        const object: JsonObject = {
          apiVersion: apiVersionOf(kind),
          kind: kind.kind,
          ...spec,
          metadata,
          spec,
          data: spec,
        }
        kind.check(object, undefined, nodePemChecks)
        kind.check(object, { ...spec }, nodePemChecks)
        kind.conflicts?.(object, [object, spec, { metadata, spec: { secureServing: spec, addresses: [spec] } }])
      }),
      { numRuns: 200 },
    )
  }
})

interface TableCase {
  readonly name: string
  readonly object: JsonObject
  /** `severity path` of each problem. */
  readonly problems: readonly string[]
}

describe('pod protectors', () => {
  const table: readonly TableCase[] = JSON.parse(
    readFileSync(new URL('../../../test/data/pod-protector-objects.json', import.meta.url), 'utf8'),
  ).cases
  const checkShape = createSchemaCheck({
    ...POD_PROTECTORS.schema,
    properties: {
      ...POD_PROTECTORS.schema.properties,
      metadata: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  })
  for (const { name, object, problems } of table) {
    test(name, () => {
      const shape = checkShape(object, '').problems.map(({ severity, path }) => `${severity} ${path}`)
      assert.deepEqual([...shape, ...errorsOf(POD_PROTECTORS, object)], problems)
    })
  }
})

describe('secrets', () => {
  const data = (value: Record<string, string>, more: JsonObject = {}): JsonObject => ({ data: value, ...more })
  const cases: readonly (readonly [string, JsonObject, JsonObject | undefined, readonly string[]])[] = [
    ['plain', data({ 'a-b_c.d': 'eA==' }), undefined, []],
    ['bad keys', data({ 'a/b': '', '..': '', '..x': '', '.x': '' }), undefined, ['data[a/b]', 'data[..]', 'data[..x]']],
    ['tls without key', data({ 'tls.crt': '' }, { type: 'kubernetes.io/tls' }), undefined, ['data[tls.key]']],
    ['basic auth needs one', data({ password: '' }, { type: 'kubernetes.io/basic-auth' }), undefined, []],
    ['basic auth with none', data({}, { type: 'kubernetes.io/basic-auth' }), undefined, ['data[username]']],
    ['type of __proto__', data({}, { type: '__proto__' }), undefined, []],
    ['too big', data({ a: 'AAAA'.repeat(349_526) }), undefined, ['data']],
    ['as big as may be', data({ a: `${'AAAA'.repeat(349_525)}AA==` }), undefined, []],
    ['type changed', data({}, { type: 'b' }), data({}, { type: 'a' }), ['type']],
    ['type defaulted', data({}, { type: 'Opaque' }), data({}), []],
    ['immutable, same', data({ a: 'eA==' }, { immutable: true }), data({ a: 'eA==' }, { immutable: true }), []],
    [
      'immutable, changed',
      data({ a: 'eQ==' }, { immutable: true }),
      data({ a: 'eA==' }, { immutable: true }),
      ['data'],
    ],
    [
      'immutable, a key more',
      data({ a: '', b: '' }, { immutable: true }),
      data({ a: '' }, { immutable: true }),
      ['data'],
    ],
    ['no longer immutable', data({}), data({}, { immutable: true }), ['immutable']],
  ]
  for (const [name, object, before, paths] of cases) {
    test(name, () => {
      const expected = paths.map((path) => `error ${path}`)
      assert.deepEqual(errorsOf(SECRETS, object, before), expected)
    })
  }

  test('a pair that does not fit is a warning', () => {
    const pair = data({ 'tls.crt': 'eA==', 'tls.key': 'eA==' }, { type: 'kubernetes.io/tls' })
    assert.deepEqual(errorsOf(SECRETS, pair), ['warning data[tls.crt]', 'warning data[tls.key]'])
  })
})

test('leases', () => {
  assert.deepEqual(errorsOf(LEASES, { spec: { leaseDurationSeconds: 1, leaseTransitions: 0 } }), [])
  assert.deepEqual(errorsOf(LEASES, {}), [])
  assert.deepEqual(
    errorsOf(LEASES, { spec: { leaseDurationSeconds: 0, leaseTransitions: -1, preferredHolder: 'x' } }),
    ['error spec.leaseDurationSeconds', 'error spec.leaseTransitions', 'error spec.preferredHolder'],
  )
})

test('events are where their objects are', () => {
  const event = (namespace: string, its?: string, more: JsonObject = {}): JsonObject => ({
    metadata: { name: 'a', namespace },
    involvedObject: its === undefined ? {} : { namespace: its },
    ...more,
  })
  const wrong = ['error involvedObject.namespace']
  assert.deepEqual(errorsOf(EVENTS, event('default')), [])
  assert.deepEqual(errorsOf(EVENTS, event('a', 'a')), [])
  assert.deepEqual(errorsOf(EVENTS, event('a')), wrong)
  assert.deepEqual(errorsOf(EVENTS, event('kube-system')), wrong)
  assert.deepEqual(errorsOf(EVENTS, event('a', 'b')), wrong)
  const timed = {
    eventTime: '2030-01-01T00:00:00.000000Z',
    reportingComponent: 'a',
    reportingInstance: 'b',
    reason: 'c',
  }
  assert.deepEqual(errorsOf(EVENTS, event('kube-system', undefined, { ...timed, action: 'd' })), [])
  assert.deepEqual(errorsOf(EVENTS, event('a', 'a', timed)), ['error action'])
  const long = { ...timed, action: 'd'.repeat(129), message: 'm'.repeat(1025) }
  assert.deepEqual(errorsOf(EVENTS, event('a', 'a', long)), ['error action', 'error message'])
})
