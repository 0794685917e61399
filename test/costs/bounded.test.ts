// What is not linear is bounded: the dearest that a short patch can ask for costs no more than reading the largest body some times.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { MAX_VALUES, parseJson } from '../../src/kube/core/objects/json-text.ts'
import { jsonPatch } from '../../src/kube/core/objects/patch.ts'
import { nanoseconds } from './measure.ts'
import { parserOf } from './parser.ts'
import { KIB, MIB, repeat, write } from './shapes.ts'

const TRIALS = 3
const MOST_READINGS = 20
const members = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`k${n}`, 0]))
const items = Array.from({ length: MAX_VALUES - 10 }, (_, n) => n)

const PATCHES: Readonly<Record<string, { readonly object: JsonObject; readonly operation: JsonObject }>> = {
  'copies of a large map': { object: { map: members }, operation: { op: 'copy', from: '/map', path: '/other' } },
  'comparisons with a large map': { object: { map: members }, operation: { op: 'test', path: '/map', value: members } },
  'insertions at the head of a long list': {
    object: { list: items },
    operation: { op: 'add', path: '/list/0', value: 0 },
  },
  'moves within a long list': { object: { list: items }, operation: { op: 'move', from: '/list/1', path: '/list/0' } },
}

for (const [name, { object, operation }] of Object.entries(PATCHES)) {
  test(`${name}, ten thousand of them`, () => {
    const patch = new Array<JsonObject>(10_000).fill(operation)
    const patching = parserOf({
      name,
      limit: KIB,
      shapes: {},
      prepare: () => object,
      read: (to) => jsonPatch(to, patch),
    })
    // As many members as a body may have; 3 MiB of such bodies.
    const text = write(repeat('"k{n}":0,', '{', '"a":0}'), 300 * KIB)
    const reading = nanoseconds(() => parseJson(text), TRIALS) * ((3 * MIB) / text.length)
    const cost = nanoseconds(patching.open(''), TRIALS)
    assert.ok(cost <= MOST_READINGS * reading, `${(cost / reading).toFixed(1)} times the reading of 3 MiB`)
  })
}
