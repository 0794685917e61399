// What upstream sends of the objects that the cache keeps.

import { FactsReader } from '../../../src/cache/core/bytes/object-facts.ts'
import { ListSplitter } from '../../../src/cache/core/bytes/split-list.ts'
import { compileFieldSelector, selectableFields } from '../../../src/cache/core/fields/selectable-fields.ts'
import { JSON_SHAPES, JSON_TOKENS } from '../bodies/json.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { KIB, list, MIB, nested, repeat, type Shape } from '../shapes.ts'

const PODS = selectableFields({ group: '', version: 'v1', resource: 'pods', namespaced: true })
const LIMITS = { objectBytes: 10 * MIB, objects: 1_000_000 }
/** As a read of a socket has it. */
const READ_BYTES = 64 * KIB

function feed(target: { feed(chunk: Buffer): void }, body: Buffer, size = READ_BYTES): void {
  for (let at = 0; at < body.length; at += size) target.feed(body.subarray(at, at + size))
}

const HEAD = '{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1"'

const OBJECT_SHAPES: Readonly<Record<string, Shape>> = {
  ...JSON_SHAPES,
  labels: list('"k{n}":"v"', `${HEAD},"labels":{`, '}}}'),
  annotations: list('"k{n}":"v"', `${HEAD},"annotations":{`, '}}}'),
  'escaped keys': list('"\\u006e{n}":"v"', `${HEAD}},"spec":{`, '}}'),
  'escaped quotes': repeat('\\"', `${HEAD}},"status":{"phase":"`, '"}}'),
  'a long string': repeat('a', `${HEAD}},"spec":{"nodeName":"`, '"}}'),
  characters: repeat('\xc3\xa9', `${HEAD},"uid":"`, '"}}'),
  brackets: nested('[', ']'),
  maps: nested('{"a":', '}', '1'),
}

const ITEM = '{"metadata":{"name":"a"}}'
const LIST = '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":['

export const PARSERS: readonly Parser[] = [
  parserOf({
    name: 'object for the cache, JSON',
    limit: 3 * MIB,
    heap: 200,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => new FactsReader(PODS.kept).read(body),
    tokens: JSON_TOKENS,
    shapes: OBJECT_SHAPES,
  }),
  parserOf({
    name: 'list for the cache, JSON',
    limit: 3 * MIB,
    prepare: bytes,
    read: (body) => {
      const splitter = new ListSplitter(LIMITS, () => undefined)
      feed(splitter, body)
      splitter.end()
    },
    tokens: [...JSON_TOKENS, ITEM, LIST],
    shapes: {
      objects: list(ITEM, LIST, ']}'),
      'objects of other kinds': list('{"apiVersion":"v1"}', LIST, ']}'),
      'a long object': repeat('a', `${LIST}{"metadata":{"name":"`, '"}}]}'),
      quotes: repeat('"', LIST),
      backslashes: repeat('\\', `${LIST}{"`),
      'open brackets': repeat('[', `${LIST}{`),
      'other fields': list('"k{n}":1', '{', '}'),
      spaces: repeat(' ', '{'),
    },
  }),
  parserOf({
    name: 'list for the cache, JSON, a byte at a time',
    limit: MIB,
    prepare: bytes,
    read: (body) => feed(new ListSplitter(LIMITS, () => undefined), body, 1),
    shapes: { objects: list(ITEM, LIST, ']}'), 'a long object': repeat('a', `${LIST}{"metadata":{"name":"`) },
  }),
  parser({
    name: 'field selector for the cache',
    limit: 64 * KIB,
    read: (text) => compileFieldSelector(text, PODS)?.({ namespace: 'a', name: 'b', fields: [] }),
    tokens: ['metadata.name', '=', '!=', '==', ',', '\\'],
    shapes: {
      terms: list('metadata.name=a', '', ''),
      commas: repeat(','),
      'escaped commas': repeat('\\,', 'metadata.name='),
      backslashes: repeat('\\\\', 'metadata.name='),
      'a long field': repeat('!', '', '=a'),
    },
  }),
]
