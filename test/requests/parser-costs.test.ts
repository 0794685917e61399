// What a client sends is read in time linear to its length: for each parser, inputs that are unkind to it grow from 1 KiB to its
// limit, and a byte must not cost much more in the largest than in the smallest. Processor time of this thread in one run is
// compared with itself, so that it matters neither how fast the machine is nor what else runs on it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NAMESPACES, UPSTREAM_CLUSTERS } from '../../src/api/kinds/scheme.ts'
import { SECRETS } from '../../src/api/kinds/secret-kind.ts'
import type { JsonObject } from '../../src/api/kube/json-object.ts'
import { negotiate } from '../../src/apiserver/http/accept.ts'
import { Query } from '../../src/apiserver/http/query.ts'
import { parseFieldSelector } from '../../src/apiserver/list/field-selector.ts'
import { decodeProtobuf } from '../../src/apiserver/protobuf/objects.ts'
import { strategicPatch } from '../../src/apiserver/registry/strategic-patch.ts'
import { parseJson } from '../../src/core/objects/json-text.ts'
import { trackUpdate } from '../../src/core/objects/managed-fields.ts'
import { shapeMetadata } from '../../src/core/objects/metadata-shape.ts'
import { jsonPatch } from '../../src/core/objects/patch.ts'
import { applyConfiguration } from '../../src/core/objects/server-side-apply.ts'
import { MAX_YAML_LENGTH } from '../../src/core/objects/strict-decode.ts'
import { validateShape } from '../../src/core/objects/structural-schema.ts'
import { parseYaml } from '../../src/core/objects/yaml-text.ts'
import { readDeletionRequest } from '../../src/core/protection/requests/deletion-request.ts'
import { readEvictionRequest } from '../../src/core/protection/requests/eviction-request.ts'
import { readListQuery } from '../../src/core/request/list-options.ts'
import { MAX_LISTED_LENGTH, readRequestHead } from '../../src/core/request/request-head.ts'
import { MAX_TARGET_LENGTH, parseRequestInfo } from '../../src/core/request/request-info.ts'
import { readBearerToken } from '../../src/core/request/websocket-token.ts'
import { parseLabelSelector } from '../../src/core/selectors/parse-selector.ts'
import { MAX_DELETION_BYTES } from '../../src/gateway/protect/deletion.ts'

const KIB = 1024
const SMALLEST = KIB
/** Caches and garbage collection may make a byte of a long input dearer; a square makes it dearer by how much longer it is. */
const FACTOR = 4
/** Of what fills maps with members and items, which the processor's caches do not hold. */
const FACTOR_OF_MAPS = 16

/** What is to be read, about so many bytes of it. */
type Shape<T> = (bytes: number) => T

function costs<T>(
  name: string,
  limit: number,
  read: (input: T) => void,
  shapes: Readonly<Record<string, Shape<T>>>,
  factor: number = FACTOR,
): void {
  describe(name, () => {
    for (const [shape, make] of Object.entries(shapes)) {
      test(shape, () => {
        const attempt = (input: T): void => {
          try {
            read(input)
          } catch (error) {
            // Refused is fine; a bug, or a stack that overflows, is not.
            if (!(error instanceof Error) || error instanceof RangeError || error instanceof TypeError) throw error
          }
        }
        const few = SMALLEST
        const smallest = nanosecondsPerByte(attempt, make(few), few)
        const largest = nanosecondsPerByte(attempt, make(limit), limit)
        // What costs next to nothing anyway is not compared: it is all noise.
        const bound = factor * Math.max(smallest, NEXT_TO_NOTHING)
        assert.ok(
          largest <= bound,
          `${largest.toFixed(1)} ns for a byte of ${limit}, ${smallest.toFixed(1)} for one of ${few}`,
        )
      })
    }
  })
}

const NEXT_TO_NOTHING = 2
const TRIALS = 3
const TRIAL_MICROSECONDS = 2000

/** The best of some trials: what else the process did in the others, it did not do in that one. */
function nanosecondsPerByte<T>(read: (input: T) => void, input: T, bytes: number): number {
  let best = Number.POSITIVE_INFINITY
  read(input)
  for (let trial = 0; trial < TRIALS; trial++) {
    const start = process.threadCpuUsage()
    let rounds = 0
    let used = 0
    while (used < TRIAL_MICROSECONDS) {
      read(input)
      rounds++
      const { user, system } = process.threadCpuUsage(start)
      used = user + system
    }
    best = Math.min(best, (used * 1000) / rounds / bytes)
  }
  return best
}

const repeat =
  (text: string, before = '', after = ''): Shape<string> =>
  (bytes) =>
    before + text.repeat(Math.max(1, Math.floor((bytes - before.length - after.length) / text.length))) + after

costs('request target', MAX_TARGET_LENGTH, (target) => void parseRequestInfo('GET', target), {
  slashes: repeat('/', '/api/v1/'),
  'percent signs in the path': repeat('%61', '/api/v1/'),
  'parameters without values, then a long one': (bytes) =>
    `/api/v1/pods?${'a&'.repeat(Math.min(bytes / 4, 9_900))}${'x'.repeat(bytes / 2)}`,
  'ampersands, then a long one': (bytes) =>
    `/api/v1/pods?${'&'.repeat(Math.min(bytes / 2, 9_900))}${'x'.repeat(bytes / 2)}`,
  'equals signs': repeat('=', '/api/v1/pods?'),
  semicolons: repeat(';&', '/api/v1/pods?'),
  'encoded keys': repeat('%61=b&', '/api/v1/pods?'),
  'a limit of many digits': repeat('1', '/api/v1/pods?fieldSelector=metadata.name%3Da&limit='),
  'a limit of many zeros': repeat('0', '/api/v1/pods?fieldSelector=metadata.name%3Da&limit='),
  'a timeout of many digits': repeat('9', '/api/v1/pods?fieldSelector=metadata.name%3Da&timeoutSeconds=-'),
})

// Further than a target may be: what searches to the end for each pair is not slow enough below it.
costs('query', KIB * KIB, (query: string) => void readListQuery(query), {
  'parameters without values, then a long one': (bytes) =>
    'a&'.repeat(Math.min(bytes / 4, 9_900)) + 'x'.repeat(bytes / 2),
  'ampersands, then a long one': (bytes) => '&'.repeat(Math.min(bytes / 2, 9_900)) + 'x'.repeat(bytes / 2),
})

const SELECTOR = 48 * KIB
costs('selectors', SELECTOR, (query) => void parseRequestInfo('GET', `/api/v1/pods?${query}`), {
  'terms of a field selector': repeat('metadata.name=a,', 'fieldSelector='),
  'terms that are alike': repeat('metadata.name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,', 'fieldSelector='),
  'commas in a field selector': repeat(',', 'fieldSelector=metadata.name=a'),
  'backslashes in a field selector': repeat('\\\\', 'fieldSelector=metadata.name='),
  'keys of a label selector': repeat('a,', 'fieldSelector=metadata.name=a&labelSelector='),
  'values of a label selector': repeat('a,', 'fieldSelector=metadata.name=a&labelSelector=a+in+(', ')'),
  'an integer in a label selector': repeat('1', 'fieldSelector=metadata.name=a&labelSelector=a>'),
  'a long key': repeat('a', 'fieldSelector=metadata.name=a&labelSelector='),
  'a long prefix': repeat('a', 'fieldSelector=metadata.name=a&labelSelector=', '/a'),
})

const HEAD = [':method', 'GET', ':path', '/', ':authority', 'a', ':scheme', 'https']
const lines =
  (name: string, value: string): Shape<readonly string[]> =>
  (bytes) => {
    const count = Math.floor(bytes / (name.length + value.length + 32))
    return [...HEAD, ...Array.from({ length: count }, () => [name, value]).flat()]
  }
const line =
  (name: string, value: Shape<string>): Shape<readonly string[]> =>
  (bytes) => [...HEAD, name, value(bytes)]

function readHead(list: readonly string[]): void {
  readRequestHead([...list], '192.0.2.1', false)
  readBearerToken([...list])
}

costs('head', KIB * KIB, readHead, {
  'lines of x-forwarded-for': lines('x-forwarded-for', ''),
  'lines of connection': lines('connection', ''),
  'lines of sec-websocket-protocol': lines('sec-websocket-protocol', ''),
  'blanks around a token': line('authorization', repeat(' ', 'Bearer')),
})

costs('fields that are lists', MAX_LISTED_LENGTH, readHead, {
  'commas of connection': line('connection', repeat(',')),
  'options of connection': line('connection', (bytes) =>
    Array.from({ length: bytes / 8 }, (_, i) => `a${i}`).join(','),
  ),
  'codings of te': line('te', repeat(',')),
  subprotocols: line('sec-websocket-protocol', repeat(',', 'base64url.bearer.authorization.k8s.io.YQ')),
})

const YAML: Readonly<Record<string, Shape<string>>> = {
  'closing braces': repeat('}'),
  'closing brackets': repeat(']'),
  'opening braces': repeat('{'),
  'opening brackets': repeat('['),
  'commas in a flow sequence': repeat(',', '[', ']'),
  'colons in a flow sequence': repeat(': ', '[', ']'),
  'question marks in a flow map': repeat('? ', '{', '}'),
  'bad escapes': repeat('\\q', '"', '"'),
  anchors: repeat('&a '),
  aliases: repeat('- *a\n', 'a: &a 1\nb:\n'),
  tags: repeat('!a '),
  directives: repeat('%a\n', '', '---\n'),
  dashes: repeat('- '),
  'members of a map': repeat('a: 1\n'),
  'items of a list': repeat('- a\n'),
  comments: repeat('#a\n'),
  documents: repeat('---\n'),
  'ends of documents': repeat('...\n'),
  'lines of a text': repeat('\n a', 'a'),
  blanks: repeat(' ', 'a', 'b'),
  merges: repeat('  <<: *a\n', 'a: &a {x: 1}\nb:\n'),
  'long aliases': (bytes) => `a: &a ${'x'.repeat(bytes / 2)}\nb:\n${'- *a\n'.repeat(bytes / 10)}`,
  digits: repeat('1', 'a: '),
}

costs('YAML', MAX_YAML_LENGTH / 2, (text) => void parseYaml(text), YAML)

describe('YAML that is none', () => {
  // An error for each of its tokens, with a stack, made such a text five times as dear.
  for (const shape of [
    'closing braces',
    'closing brackets',
    'commas in a flow sequence',
    'colons in a flow sequence',
    'bad escapes',
  ]) {
    test(`${shape} cost no more than a good text of that length`, () => {
      const bytes = 64 * KIB
      const read = (text: string): void => {
        try {
          parseYaml(text)
        } catch (error) {
          assert.ok(error instanceof SyntaxError)
        }
      }
      const good = nanosecondsPerByte(read, repeat('a,', '[', 'a]')(bytes), bytes)
      const bad = nanosecondsPerByte(read, YAML[shape]?.(bytes) ?? '', bytes)
      assert.ok(bad <= 2 * good, `${bad.toFixed(1)} ns for a byte of it, ${good.toFixed(1)} of a good text`)
    })
  }
})

const JSON_TEXTS: Readonly<Record<string, Shape<string>>> = {
  'closing braces': repeat('}'),
  'opening brackets': repeat('['),
  objects: repeat('{},', '[', '{}]'),
  numbers: repeat('1,', '[', '1]'),
  digits: repeat('1'),
  escapes: repeat('\\u0041', '"', '"'),
  'keys that are given twice': repeat('"a":1,', '{', '"a":1}'),
  'long keys that are given twice': (bytes) => {
    const key = 'k'.repeat(bytes / 4)
    return `{"${key}":{${'"x":1,'.repeat(bytes / 8)}"x":1}}`
  },
}

costs('JSON', 3 * KIB * KIB, (text) => void parseJson(text), JSON_TEXTS)

for (const [format, texts] of [
  ['application/yaml', YAML],
  ['application/json', JSON_TEXTS],
] as const) {
  costs(
    `deletion, ${format}`,
    MAX_DELETION_BYTES,
    (text) => void readDeletionRequest(format, Buffer.from(text), ''),
    texts,
  )
  costs(
    `eviction, ${format}`,
    MAX_DELETION_BYTES,
    (text) => void readEvictionRequest(format, Buffer.from(text), ''),
    texts,
  )
}

costs('query of a deletion', MAX_TARGET_LENGTH, (query) => void readDeletionRequest('', Buffer.alloc(0), query), {
  'dry runs': (bytes) => `${'dryRun=All&'.repeat(Math.min(bytes / 22, 9_900))}${'x'.repeat(bytes / 2)}`,
  'a grace period of many digits': repeat('9', 'gracePeriodSeconds='),
  'equals signs': repeat('='),
})

const PROTOBUF = 'application/vnd.kubernetes.protobuf'
/** The object in runtime.Unknown: its length in three bytes. */
function sealed(raw: Buffer): Buffer {
  const { length } = raw
  const size = [(length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, (length >> 14) & 0x7f]
  return Buffer.concat([Buffer.from('k8s\0'), Buffer.from([18, ...size]), raw])
}
const messages =
  (...bytes: number[]): Shape<Buffer> =>
  (length) =>
    sealed(Buffer.concat(Array.from({ length: Math.floor((length - 8) / bytes.length) }, () => Buffer.from(bytes))))

const MESSAGES: Readonly<Record<string, Shape<Buffer>>> = {
  'empty preconditions': messages(18, 0),
  'dry runs': messages(42, 0),
  'unknown numbers': messages(0x78, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
  annotations: messages(10, 4, 0x62, 2, 10, 0),
  'no message': messages(0xff),
}
costs('deletion, Protobuf', MAX_DELETION_BYTES, (body) => void readDeletionRequest(PROTOBUF, body, ''), MESSAGES)
costs('eviction, Protobuf', MAX_DELETION_BYTES, (body) => void readEvictionRequest(PROTOBUF, body, ''), MESSAGES)

// === the embedded API server: objects and patches ===

/** Of a body of 3 MiB, a third: what is compared has been read already. */
const OBJECT = KIB * KIB

const each = <T>(bytes: number, size: number, make: (at: number) => T): T[] =>
  Array.from({ length: Math.max(1, Math.floor(bytes / size)) }, (_, at) => make(at))
const members = (bytes: number, size: number, prefix: string, value: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(each(bytes, size, (at) => [prefix + at, value]))

interface Patched {
  readonly object: JsonObject
  readonly patch: unknown
}

costs<Patched>(
  'JSON patch',
  OBJECT,
  ({ object, patch }) => void jsonPatch(object, patch),
  {
    // By edit distance, 256 KB of it took all memory.
    'a list that is compared with another': (bytes) => ({
      object: { list: each(bytes, 16, (at) => at) },
      patch: [{ op: 'test', path: '/list', value: each(bytes, 16, (at) => -at) }],
    }),
    'insertions at the head of a list': (bytes) => ({
      object: { list: each(bytes, 8, () => 0) },
      patch: each(bytes / 2, 60, () => ({ op: 'add', path: '/list/0', value: 0 })).slice(0, 9_999),
    }),
    'comparisons with a large map': (bytes) => ({
      object: { map: members(bytes, 16, 'k', 0) },
      patch: each(bytes / 2, 60, () => ({ op: 'test', path: '/map', value: {} })).slice(0, 9_999),
    }),
    'a long path': (bytes) => ({ object: {}, patch: [{ op: 'remove', path: '/a'.repeat(bytes / 2) }] }),
  },
  FACTOR_OF_MAPS,
)

costs<Patched>(
  'strategic merge patch',
  OBJECT,
  ({ object, patch }) => void strategicPatch(object, patch, NAMESPACES.schema),
  {
    'items that are merged by key': (bytes) => ({
      object: {},
      patch: { metadata: { ownerReferences: each(bytes, 16, (at) => ({ uid: `u${at}` })) } },
    }),
    'items that are deleted': (bytes) => ({
      object: { metadata: { finalizers: each(bytes, 16, (at) => `a${at}`) } },
      patch: { metadata: { '$deleteFromPrimitiveList/finalizers': each(bytes, 16, (at) => `b${at}`) } },
    }),
    'keys that are retained': (bytes) => ({
      object: { data: members(bytes, 16, 'a', '') },
      patch: { data: { $retainKeys: each(bytes, 16, (at) => `b${at}`) } },
    }),
  },
  FACTOR_OF_MAPS,
)

costs<JsonObject>(
  'metadata',
  OBJECT,
  (metadata) => void shapeMetadata(metadata),
  {
    'owners that all control': (bytes) => ({ ownerReferences: each(bytes, 20, () => ({ controller: true })) }),
    'labels that are none': (bytes) => ({ labels: members(bytes, 12, '-', '-') }),
    'finalizers that are none': (bytes) => ({ finalizers: each(bytes, 4, () => '-') }),
    'unknown fields': (bytes) => members(bytes, 12, 'k', 1),
  },
  FACTOR_OF_MAPS,
)

costs<JsonObject>(
  'schema',
  OBJECT,
  (spec) => void validateShape(UPSTREAM_CLUSTERS.schema, { spec }),
  {
    'items of a wrong type': (bytes) => ({ servers: each(bytes, 2, () => 1) }),
    'items that are there twice': (bytes) => ({ secureServing: { serverNames: each(bytes, 4, () => 'a') } }),
  },
  FACTOR_OF_MAPS,
)

const WRITING = {
  manager: 'x',
  subresource: '',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  schema: SECRETS.schema,
  hasStatus: false,
} as const

function managed(bytes: number, operation: string): JsonObject {
  const managedFields = each(bytes, 160, (at) => ({
    manager: `m${at}`,
    operation,
    apiVersion: 'v1',
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': { [`f:k${at}`]: {} } },
  }))
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', managedFields }, data: { a: 'eA==' } }
}

costs<JsonObject>(
  'managedFields',
  OBJECT / 2,
  (after) => void trackUpdate({ ...WRITING, before: { ...after, data: {} }, after }),
  {
    appliers: (bytes) => managed(bytes, 'Apply'),
    updaters: (bytes) => managed(bytes, 'Update'),
  },
)

function apply(live: JsonObject): void {
  const applied = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' }, data: { b: 'eA==' } }
  applyConfiguration({ ...WRITING, live, applied, force: false })
}

costs<JsonObject>(
  'server-side apply',
  OBJECT / 2,
  apply,
  {
    'beside many appliers': (bytes) => managed(bytes, 'Apply'),
  },
  FACTOR_OF_MAPS,
)

/** The head of a request to the embedded API server has no more. */
const CONTROL_HEAD = 64 * KIB
costs(
  'query of the embedded API server',
  CONTROL_HEAD,
  (query) => void new Query(query),
  {
    pairs: repeat('a=b&'),
    'equals signs': repeat('='),
  },
  FACTOR_OF_MAPS,
)
costs('its label selectors', CONTROL_HEAD, (text) => void parseLabelSelector(text), {
  keys: repeat('a,', '', 'a'),
  values: repeat('a,', 'a in (', ')'),
  'a value that is none': repeat('a=b,', '', '-=c'),
})
costs('its field selectors', CONTROL_HEAD, (text) => void parseFieldSelector(text, UPSTREAM_CLUSTERS), {
  terms: repeat('metadata.name=a,'),
})
costs('its Accept', CONTROL_HEAD, (text) => void negotiate(text), {
  clauses: repeat('a/b;q=0.1,'),
  commas: repeat(','),
})
costs('its Protobuf', OBJECT, (body) => void decodeProtobuf(body), {
  'unknown numbers': messages(0x78, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
  'no message': messages(0xff),
})
