// What upstream sends of the objects that the cache keeps.

import { declaredMetadata } from '../../../src/cache/core/bytes/declared-metadata.ts'
import { encodeMetadata } from '../../../src/cache/core/bytes/encode-metadata.ts'
import { FactsReader } from '../../../src/cache/core/bytes/object-facts.ts'
import { ProtobufFactsReader } from '../../../src/cache/core/bytes/protobuf-facts.ts'
import { ListSplitter } from '../../../src/cache/core/bytes/split-list.ts'
import { ProtobufListSplitter, readFrame } from '../../../src/cache/core/bytes/split-protobuf.ts'
import { compileFieldSelector, selectableFields } from '../../../src/cache/core/fields/selectable-fields.ts'
import { EventFrames } from '../../../src/kube/io/event-frames.ts'
import { JSON_SHAPES, JSON_TOKENS } from '../bodies/json.ts'
import { bytes, type Parser, parser, parserOf } from '../parser.ts'
import { KIB, list, MIB, nested, repeat, type Shape } from '../shapes.ts'

const PODS = selectableFields({ group: '', version: 'v1', resource: 'pods', namespaced: true })
const LIMITS = { objectBytes: 10 * MIB, objects: 1_000_000 }
/** A length in front: two bytes, so that 100 are not one. */
const IN_LIST = 'k8s\0\n\x0d\n\x02v1\x12\x07PodList\x12\xff\xff\xff\x7f'
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
  parserOf({
    name: 'object for the cache, metadata',
    limit: MIB,
    heap: 200,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => [
      declaredMetadata(body, { start: 0, end: body.length }),
      encodeMetadata(body, { start: 0, end: body.length }),
    ],
    tokens: JSON_TOKENS,
    shapes: {
      labels: list('"k{n}":"v"', '{"labels":{', '}}'),
      owners: list('{"uid":"a{n}"}', '{"ownerReferences":[', ']}'),
      'managed fields': list('{"manager":"a"}', '{"managedFields":[', ']}'),
      members: list('"k{n}":1', '{', '}'),
    },
  }),
  parserOf({
    name: 'object for the cache, Protobuf',
    limit: 3 * MIB,
    heap: 200,
    fillsMaps: true,
    prepare: bytes,
    read: (body) => new ProtobufFactsReader(PODS.kept).read(body),
    tokens: ['k8s\0', '\n\x01', '\x12\0', '\x5a\0', '\xff\xff\xff\x7f'],
    shapes: {
      'empty fields': repeat('\x12\0', 'k8s\0\x12\xff\xff\xff\x7f'),
      'empty labels': repeat('\x5a\0', 'k8s\0\x12\xff\xff\xff\x7f\n\xff\xff\xff\x7f'),
      'type again': repeat('\n\0', 'k8s\0'),
    },
  }),
  parserOf({
    name: 'list for the cache, Protobuf',
    limit: 3 * MIB,
    prepare: bytes,
    read: (body) => feed(new ProtobufListSplitter(LIMITS, () => undefined), body),
    tokens: ['k8s\0', '\n\x01', '\x12\0', '\xff\xff\xff\x7f'],
    shapes: {
      'empty objects': repeat('\x12\0', IN_LIST),
      'a long object': repeat('a', `${IN_LIST}\x12\xff\xff\xff\x03`),
      'type again': repeat('\n\0', 'k8s\0'),
    },
  }),
  parserOf({
    name: 'list for the cache, Protobuf, some bytes at a time',
    limit: MIB,
    prepare: bytes,
    read: (body) => feed(new ProtobufListSplitter(LIMITS, () => undefined), body, 10),
    shapes: {
      'empty objects': repeat('\x12\0', IN_LIST),
      'a long object': repeat('a', `${IN_LIST}\x12\xff\xff\x3f`),
    },
  }),
  parserOf({
    name: 'watch for the cache, Protobuf',
    limit: MIB,
    prepare: bytes,
    read: (body) => {
      const frames = new EventFrames({ take: () => true, give: () => undefined })
      for (let at = 0; at < body.length; at += 100)
        for (const frame of frames.push(body.subarray(at, at + 100))) readFrame(frame)
    },
    tokens: ['\0\0\0\0', '\0\0\0\x01a', '\0\0\x01\0', '\xff\xff\xff\xff'],
    shapes: {
      'small events': repeat('\0\0\0\x0b\n\x05ADDED\x12\x02\n\0'),
      'a long event': repeat('a', '\0\xff\xff\xff'),
    },
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
