// Server-side apply and managedFields, compared with answers of a real kube-apiserver (test/data/server-side-apply.json), and general
// properties of apply.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import type { JsonSchema } from '../../../kit/api/json/json-schema.ts'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import { invalid, StatusError } from '../../api/status.ts'
import { trackUpdate } from './managed-fields.ts'
import { shapeMetadata } from './metadata-shape.ts'
import type { Writing } from './ownership.ts'
import { jsonPatch, mergePatch } from './patch.ts'
import { applyConfiguration, applyConflict } from './server-side-apply.ts'
import { shapeObject, validateShape } from './structural-schema.ts'

interface Step {
  readonly do: 'create' | 'update' | 'merge' | 'json' | 'apply'
  readonly manager: string
  readonly force?: boolean
  readonly subresource?: 'status'
  readonly body: JsonObject
  readonly code: number
  readonly object?: JsonObject
  readonly message?: string
  readonly causes?: readonly { readonly message: string; readonly field: string }[]
}

const DATA: {
  readonly schema: JsonSchema
  readonly scenarios: readonly { readonly title: string; readonly name: string; readonly steps: readonly Step[] }[]
} = JSON.parse(readFileSync(join(import.meta.dirname, '../../../../test/data/server-side-apply.json'), 'utf8'))
const { schema } = DATA
const TIME = '2026-01-01T00:00:00Z'
const HEAD = { apiVersion: 'test.example.com/v1', kind: 'Widget' }

/** A minimal API server for these answers. */
class Server {
  object: JsonObject | undefined
  readonly #name: string

  constructor(name: string) {
    this.#name = name
  }

  do(step: Step): void {
    const subresource = step.subresource ?? ''
    const writing: Writing = {
      manager: step.manager,
      subresource,
      apiVersion: HEAD.apiVersion,
      time: TIME,
      schema,
      hasStatus: true,
    }
    const before = this.object
    if (step.do === 'apply') {
      const applied = this.#whole(step.body)
      const outcome = applyConfiguration({ ...writing, live: before, applied, force: step.force === true })
      if ('conflicts' in outcome) throw applyConflict(outcome.conflicts)
      this.#store(outcome.object, subresource)
    } else {
      const wanted =
        step.do === 'merge'
          ? mergePatch(before ?? {}, step.body)
          : step.do === 'json'
            ? jsonPatch(before ?? {}, step.body)
            : this.#whole(step.body)
      assert.ok(isRecord(wanted))
      const { object } = shapeObject(schema, wanted)
      const after = { ...object, metadata: shapeMetadata(wanted['metadata']).metadata }
      this.#store(trackUpdate({ ...writing, before, after }), subresource)
    }
  }

  #whole(body: JsonObject): JsonObject {
    const metadata = isRecord(body['metadata']) ? body['metadata'] : {}
    return { ...HEAD, ...body, metadata: { name: this.#name, ...metadata } }
  }

  #store(object: JsonObject, subresource: string): void {
    const { status: _, ...rest } = object
    const live = this.object
    const status = live?.['status']
    let kept: JsonObject = { ...rest, ...(status !== undefined && { status }) }
    if (subresource === 'status' && live !== undefined) {
      const { status: _old, ...main } = live
      const { managedFields } = object['metadata'] as JsonObject
      const metadata = { ...(live['metadata'] as JsonObject), managedFields }
      kept = { ...main, metadata, ...(object['status'] !== undefined && { status: object['status'] }) }
    }
    const errors = validateShape(schema, kept)
    if (errors.length > 0) throw invalid('test.example.com', 'Widget', this.#name, errors)
    this.object = kept
  }
}

function comparable(object: JsonObject | undefined): JsonObject {
  const { apiVersion: _, kind: _kind, ...rest } = object ?? {}
  const metadata = rest['metadata'] as JsonObject
  const entries = (metadata['managedFields'] ?? []) as readonly JsonObject[]
  const managedFields = entries
    .map(({ time, fieldsType: _type, apiVersion: _version, ...entry }) => ({
      ...entry,
      ...(time !== undefined && { time: 'T' }),
    }))
    .sort((a, b) => (JSON.stringify(keyOf(a)) < JSON.stringify(keyOf(b)) ? -1 : 1))
  return { ...rest, metadata: { ...metadata, managedFields } }
}

function keyOf(entry: JsonObject): unknown {
  return [entry['operation'], entry['manager'], entry['subresource'] ?? '']
}

for (const { title, name, steps } of DATA.scenarios) {
  test(`as kube-apiserver: ${title}`, () => {
    const server = new Server(name)
    for (const [number, step] of steps.entries()) {
      const what = `step ${number}: ${step.do} by ${step.manager}: ${JSON.stringify(step.body)}`
      try {
        server.do(step)
      } catch (error) {
        assert.ok(error instanceof StatusError, `${what}: ${String(error instanceof Error ? error.stack : error)}`)
        assert.equal(error.code, step.code, `${what}: ${error.message}`)
        compareFailure(error, step, what)
        continue
      }
      assert.ok(step.code < 300, `${what} should have been refused: ${step.message}`)
      if (step.object !== undefined) assert.deepEqual(comparable(server.object), comparable(step.object), what)
    }
  })
}

/** Go lists in random map order, and stops at the first unknown field of each. */
function compareFailure({ status }: StatusError, step: Step, what: string): void {
  if (step.causes !== undefined) {
    const theirs = step.causes.map(({ field, message }) => `${field} ${message}`).sort()
    const ours = (status.details?.causes ?? []).map(({ field, message }) => `${field} ${message}`).sort()
    assert.deepEqual(ours, theirs, what)
  }
  const message = step.message?.replace(/^(failed to create typed patch object \([^)]*\): )(errors:\n)?/, '') ?? ''
  for (const line of message.split('\n')) {
    if (step.code !== 422) assert.ok(status.message?.includes(line), `${what}: ${status.message} should say ${line}`)
  }
}

const texts = fc.constantFrom('aa', 'bb', 'cc')
const small = fc.integer({ min: 1, max: 3 })
/** As JSON.parse makes them: unchanged parts of an object are not copied. */
const PLAIN = { noNullPrototype: true } as const
/** A manager's configuration: always differs from its neighbour's if `mine` differs. */
const spec = fc.record(
  {
    text: texts,
    count: small,
    set: fc.uniqueArray(texts, { maxLength: 3 }),
    named: fc.uniqueArray(fc.record({ id: small, value: texts }, { requiredKeys: ['id'] }), {
      selector: ({ id }) => id,
    }),
    map: fc.dictionary(texts, texts, { ...PLAIN, maxKeys: 3 }),
    objects: fc.dictionary(texts, fc.record({ a: small, b: small }, { requiredKeys: [] }), { ...PLAIN, maxKeys: 3 }),
    object: fc.record({ a: texts, inner: fc.record({ x: small }, { requiredKeys: [] }) }, { requiredKeys: [] }),
    atomicMap: fc.record({ a: texts, b: texts }, { requiredKeys: [] }),
    servers: fc.array(fc.record({ endpoint: texts, weight: small }), { maxLength: 2 }),
    free: fc.dictionary(texts, fc.oneof(texts, small, fc.dictionary(texts, small, { ...PLAIN, maxKeys: 2 })), {
      ...PLAIN,
      maxKeys: 2,
    }),
  },
  { requiredKeys: [] },
)

function apply(live: JsonObject | undefined, manager: string, wanted: JsonObject, force = true): JsonObject {
  const writing = {
    manager,
    subresource: '' as const,
    apiVersion: HEAD.apiVersion,
    time: TIME,
    schema,
    hasStatus: true,
  }
  const applied = { ...HEAD, metadata: { name: 'x' }, spec: wanted }
  const outcome = applyConfiguration({ ...writing, live, applied, force })
  assert.ok('object' in outcome, JSON.stringify(outcome))
  return outcome.object
}

test('applying the same again changes nothing, and needs no force', () => {
  fc.assert(
    fc.property(spec, spec, spec, (first, second, third) => {
      const once = apply(apply(apply(undefined, 'a', first), 'b', second), 'a', third)
      const twice = apply(once, 'a', third, false)
      assert.deepEqual(apply(twice, 'a', third, false), twice)
      // An empty list or map whose items are owned separately first removes the manager's own, and then remains itself, as in Kubernetes.
      if (!/\[\]|\{\}/.test(JSON.stringify(third))) assert.deepEqual(twice, once)
    }),
    { numRuns: 300 },
  )
})

test('what was applied is there, is owned, and goes with its owner', () => {
  fc.assert(
    fc.property(spec, spec, (first, second) => {
      const live = apply(apply(undefined, 'a', first), 'b', second)
      assert.deepEqual(
        validateShape(schema, live).filter(({ reason }) => reason === 'FieldValueTypeInvalid'),
        [],
      )
      const gone = apply(apply(live, 'a', {}), 'b', {})
      // Only what the server fills in is left, and what was created for the removed fields.
      assert.deepEqual(
        leaves(gone['spec']).filter((leaf) => !leaf.endsWith('mode=A') && !leaf.endsWith('inner.y=7')),
        [],
      )
    }),
    { numRuns: 300 },
  )
})

function leaves(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item, at) => leaves(item, `${path}[${at}]`))
  if (isRecord(value)) return Object.entries(value).flatMap(([key, member]) => leaves(member, `${path}.${key}`))
  return [`${path}=${String(value)}`]
}

test('two managers with fields of their own may come in either order', () => {
  const mine = fc.record({ text: texts, set: fc.constant(['aa']), map: fc.dictionary(fc.constant('k'), texts, PLAIN) })
  const theirs = fc.record({
    count: small,
    set: fc.constant(['bb']),
    map: fc.dictionary(fc.constant('l'), texts, PLAIN),
  })
  fc.assert(
    fc.property(mine, theirs, (a, b) => {
      const one = apply(apply(undefined, 'a', a), 'b', b, false)
      const other = apply(apply(undefined, 'b', b), 'a', a, false)
      assert.deepEqual(withoutOrder(one), withoutOrder(other))
    }),
    { numRuns: 300 },
  )
})

/** The items of a set keep their order of arrival. */
function withoutOrder(object: JsonObject): JsonObject {
  const { spec: wanted, ...rest } = comparable(object)
  const { set, ...others } = wanted as { readonly set: readonly string[] }
  return { ...rest, spec: { ...others, set: [...set].sort() } }
}

test('an owned map stays, empty, when its last field goes', () => {
  const live = apply(apply(undefined, 'a', { object: { inner: {} } }), 'b', { object: { inner: { x: 1 } } })
  assert.deepEqual(apply(live, 'b', {})['spec'], { object: { inner: { y: 7 } }, mode: 'A' })
})

test('entries are sorted: appliers, then updaters, by time and name; a write that changes nothing changes no time', () => {
  const writing = { subresource: '' as const, apiVersion: HEAD.apiVersion, schema, hasStatus: true }
  const update = (before: JsonObject | undefined, manager: string, time: string, wanted: JsonObject): JsonObject =>
    trackUpdate({ ...writing, before, after: { ...HEAD, ...before, spec: wanted }, manager, time })
  const one = update(undefined, 'z', '2026-01-01T00:00:00Z', { text: 'aa' })
  const two = update(one, 'b', '2026-01-01T00:00:02Z', { text: 'aa', count: 1 })
  const three = apply(update(two, 'a', '2026-01-01T00:00:02Z', { text: 'aa', count: 1, flag: true }), 'q', { ratio: 1 })
  const entries = (three['metadata'] as JsonObject)['managedFields'] as readonly JsonObject[]
  assert.deepEqual(
    entries.map(({ manager }) => manager),
    ['q', 'z', 'a', 'b'],
  )
  assert.deepEqual(update(three, 'a', '2026-01-01T00:01:00Z', three['spec'] as JsonObject), three)
})

test('unreadable managedFields are replaced by those that are stored', () => {
  const live = apply(undefined, 'a', { text: 'aa' })
  const stored = (live['metadata'] as JsonObject)['managedFields']
  const writing = {
    subresource: '' as const,
    apiVersion: HEAD.apiVersion,
    schema,
    hasStatus: true,
    manager: 'u',
    time: TIME,
  }
  for (const managedFields of [
    undefined,
    [],
    [5],
    [{ manager: 'x', operation: 'Foo', apiVersion: 'v1', fieldsType: 'FieldsV1' }],
    [{ manager: 'x', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'k:{': {} } }],
    [
      {
        manager: 'x',
        operation: 'Apply',
        apiVersion: 'v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { __proto__: 1, 'f:a': 5 },
      },
    ],
  ]) {
    const after = { ...live, metadata: { name: 'x', managedFields } }
    assert.deepEqual(
      (trackUpdate({ ...writing, before: live, after })['metadata'] as JsonObject)['managedFields'],
      stored,
    )
  }
})
