// The three kinds of patches, as the embedded API server applies them to an object that is there.

import { strategicPatch } from '../../../src/apiserver/registry/strategic-patch.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { NAMESPACES } from '../../../src/kube/api/kinds/namespace-kind.ts'
import { jsonPatch, mergePatch } from '../../../src/kube/core/objects/patch.ts'
import { JSON_TOKENS } from '../bodies/json.ts'
import { type Parser, parser } from '../parser.ts'
import { list, MIB, nested, repeat, type Shape, write } from '../shapes.ts'

interface Patched {
  readonly object: JsonObject
  readonly patch: unknown
}

const LIMIT = 2 * MIB

/** Half of the length for each of the two. */
function both(object: Shape, patch: Shape): (length: number) => string {
  return (length) => `{"object":${write(object, length / 2)},"patch":${write(patch, length / 2)}}`
}
/** Nearly as deep as a body may be. */
const DEEP = nested('{"a":', '}', '1')(480 * 6)
const EMPTY = repeat(' ', '{}')
const TOKENS = [
  ...JSON_TOKENS,
  ...[
    '{"op":"add","path":"/list/0","value":0},',
    '{"op":"copy","from":"/a","path":"/b"},',
    '/a',
    '/-',
    '~1',
    '"$patch":"delete"',
  ],
  ...['"$retainKeys":[', '"$deleteFromPrimitiveList/finalizers":[', '"$setElementOrder/ownerReferences":['],
]

// The text is read, too, as in every request: maps of many members are slower to reach than those of few, whatever fills them.
function patched(text: string): Patched {
  const value: unknown = JSON.parse(text)
  return value as Patched
}

export const PARSERS: readonly Parser[] = [
  parser({
    name: 'JSON patch',
    limit: LIMIT,
    fillsMaps: true,
    read: (text) => {
      const { object, patch } = patched(text)
      return jsonPatch(object, patch)
    },
    tokens: TOKENS,
    shapes: {
      // By edit distance, 256 KB of it took all memory.
      'a list that is compared with another': both(
        list('{n}', '{"list":[', ']}'),
        list('-{n}', '[{"op":"test","path":"/list","value":[', ']}]'),
      ),
      'insertions at the head of a list': both(
        list('0', '{"list":[', ']}'),
        list('{"op":"add","path":"/list/0","value":0}'),
      ),
      'removals from the head of a list': both(list('0', '{"list":[', ']}'), list('{"op":"remove","path":"/list/0"}')),
      'comparisons with a large map': both(
        list('"k{n}":0', '{"map":{', '}}'),
        list('{"op":"test","path":"/map","value":{}}'),
      ),
      'moves of all': both(list('"k{n}":0', '{"map":{', '}}'), list('{"op":"move","from":"/map","path":"/map"}')),
      'members that are removed': both(list('"k{n}":0', '{"map":{', '}}'), list('{"op":"remove","path":"/map/k{n}"}')),
      'members that are added': both(EMPTY, list('{"op":"add","path":"/k{n}","value":0}')),
      'a long path': both(EMPTY, repeat('/a', '[{"op":"remove","path":"', '"}]')),
      'escapes in a path': both(EMPTY, repeat('~1', '[{"op":"add","value":1,"path":"/', '"}]')),
      'an index of many digits': both(
        repeat(' ', '{"a":[]}'),
        repeat('1', '[{"op":"add","value":1,"path":"/a/', '"}]'),
      ),
      'operations that are none': both(EMPTY, list('{}')),
    },
  }),
  parser({
    name: 'merge patch',
    limit: LIMIT,
    fillsMaps: true,
    read: (text) => {
      const { object, patch } = patched(text)
      return mergePatch(object, patch)
    },
    tokens: TOKENS,
    shapes: {
      'members that are removed': both(list('"k{n}":0', '{', '}'), list('"k{n}":null', '{', '}')),
      'members that are not there': both(list('"k{n}":0', '{', '}'), list('"j{n}":null', '{', '}')),
      'maps in maps': both(EMPTY, list('"k{n}":{"a":{"b":null}}', '{', '}')),
    },
  }),
  parser({
    name: 'strategic merge patch',
    limit: LIMIT,
    fillsMaps: true,
    read: (text) => {
      const { object, patch } = patched(text)
      return strategicPatch(object, patch, NAMESPACES.schema)
    },
    tokens: TOKENS,
    shapes: {
      'items that are merged by key': both(
        list('{"uid":"a{n}"}', '{"metadata":{"ownerReferences":[', ']}}'),
        list('{"uid":"b{n}"}', '{"metadata":{"ownerReferences":[', ']}}'),
      ),
      'items that are deleted by key': both(
        list('{"uid":"a{n}"}', '{"metadata":{"ownerReferences":[', ']}}'),
        list('{"uid":"a{n}","$patch":"delete"}', '{"metadata":{"ownerReferences":[', ']}}'),
      ),
      'items that are ordered': both(
        list('{"uid":"a{n}"}', '{"metadata":{"ownerReferences":[', ']}}'),
        list('{"uid":"b{n}"}', '{"metadata":{"$setElementOrder/ownerReferences":[', ']}}'),
      ),
      'items that are deleted': both(
        list('"a{n}"', '{"metadata":{"finalizers":[', ']}}'),
        list('"b{n}"', '{"metadata":{"$deleteFromPrimitiveList/finalizers":[', ']}}'),
      ),
      'items that are added': both(
        list('"a{n}"', '{"metadata":{"finalizers":[', ']}}'),
        list('"b{n}"', '{"metadata":{"finalizers":[', ']}}'),
      ),
      'keys that are retained': both(
        list('"a{n}":""', '{"data":{', '}}'),
        list('"b{n}"', '{"data":{"$retainKeys":[', ']}}'),
      ),
      'maps in maps': both(EMPTY, repeat(`"k{n}":${DEEP},`, '{', '"a":1}')),
    },
  }),
]
