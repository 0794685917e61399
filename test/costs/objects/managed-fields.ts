// managedFields: what an update and a server-side apply make of those that the object brings.

import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { SECRETS } from '../../../src/kube/api/kinds/secret-kind.ts'
import { trackUpdate } from '../../../src/kube/core/objects/managed-fields.ts'
import { applyConfiguration } from '../../../src/kube/core/objects/server-side-apply.ts'
import { JSON_TOKENS } from '../bodies/json.ts'
import { type Parser, parser } from '../parser.ts'
import { MIB, nested, repeat, type Shape } from '../shapes.ts'

const WRITING = {
  manager: 'x',
  subresource: '',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  schema: SECRETS.schema,
  hasStatus: false,
} as const

const HEAD = '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","managedFields":['
const TAIL = ']},"data":{"a":"eA=="}}'
const entry = (manager: string, operation: string, fields: string): string =>
  `{"manager":"${manager}","operation":"${operation}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${fields}}`
const entries = (text: string): Shape => repeat(`${text},`, HEAD, text + TAIL)
const fields = (text: string): Shape => {
  const [before = '', after = ''] = entry('m', 'Apply', `{${text}"f:a":{}}`).split(text)
  return repeat(text, HEAD + before, after + TAIL)
}

const SHAPES: Readonly<Record<string, Shape>> = {
  appliers: entries(entry('m{n}', 'Apply', '{"f:data":{"f:k{n}":{}}}')),
  updaters: entries(entry('m{n}', 'Update', '{"f:data":{"f:k{n}":{}}}')),
  'updaters of the same field': entries(entry('m{n}', 'Update', '{"f:data":{"f:a":{}}}')),
  'appliers of the same field': entries(entry('m{n}', 'Apply', '{"f:data":{"f:a":{}}}')),
  'one manager again and again': entries(entry('m', 'Update', '{"f:data":{"f:k{n}":{}}}')),
  'fields of one manager': fields('"f:k{n}":{},'),
  'items of one manager': fields('"k:{\\"name\\":\\"a{n}\\"}":{".":{}},'),
  'values of one manager': fields('"v:{n}":{},'),
  'fields that are none': fields('"x{n}":{},'),
  'fields in fields': (length) => {
    const { parts } = fields('#') as { parts: readonly { text: string }[] }
    const [before, , after] = parts.map(({ text }) => text)
    // As deep as a body may be.
    const depth = nested('{"f:a":', '}', '{}')(480 * 8)
    return `${before}"f:b":${depth},"f:c":${' '.repeat(Math.max(0, length - depth.length))}{},${after}`
  },
}

const TOKENS = [
  ...JSON_TOKENS,
  '"f:a":',
  '"k:{}":',
  '"v:1":',
  '".":{}',
  entry('m', 'Apply', '{}'),
  entry('n', 'Update', '{}'),
]

function parsed(text: string): JsonObject {
  const value: unknown = JSON.parse(text)
  return value as JsonObject
}

function apply(live: JsonObject): unknown {
  const applied = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, data: { b: 'eA==' } }
  return applyConfiguration({ ...WRITING, live, applied, force: false })
}

const APPLIED = {
  members: repeat(
    '"k{n}":"eA==",',
    '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{',
    '"a":"eA=="}}',
  ),
  'unknown fields': repeat('"k{n}":1,', '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},', '"a":"eA=="}'),
  'values of wrong types': repeat(
    '"k{n}":1,',
    '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{',
    '"a":1}}',
  ),
  labels: repeat('"k{n}":"v",', '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","labels":{', '"a":"b"}}}'),
  'owners that are given twice': repeat(
    '{"uid":"a"},',
    '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","ownerReferences":[',
    '{"uid":"a"}]}}',
  ),
  owners: repeat(
    '{"uid":"a{n}"},',
    '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","ownerReferences":[',
    '{"uid":"a"}]}}',
  ),
  finalizers: repeat('"a{n}",', '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","finalizers":[', '"b"]}}'),
}

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'managedFields of an update',
    limit: MIB,
    fillsMaps: true,
    read: (text) => {
      const after = parsed(text)
      return trackUpdate({ ...WRITING, before: { ...after, data: {} }, after })
    },
    tokens: TOKENS,
    shapes: SHAPES,
  }),
  parser({
    name: 'apply beside managedFields',
    limit: MIB,
    fillsMaps: true,
    read: (text) => apply(parsed(text)),
    tokens: TOKENS,
    shapes: SHAPES,
  }),
  parser({
    name: 'what is applied',
    limit: MIB,
    fillsMaps: true,
    read: (text) => {
      const applied = parsed(text)
      const created = applyConfiguration({ ...WRITING, live: undefined, applied, force: false })
      if (!('object' in created)) return created
      // Again, with less than before: what is left out is removed.
      return applyConfiguration({
        ...WRITING,
        live: created.object,
        applied: { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } },
        force: false,
      })
    },
    tokens: JSON_TOKENS,
    shapes: APPLIED,
  }),
]
