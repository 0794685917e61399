// An error for each token of a YAML text, with a stack, once made such a text five times as dear as one that is good.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseYaml } from '../../src/kube/core/objects/yaml-text.ts'
import { YAML_SHAPES } from './bodies/yaml.ts'
import { nanoseconds } from './measure.ts'
import { parser } from './parser.ts'
import { KIB, repeat, type Shape, write } from './shapes.ts'

const LENGTH = 64 * KIB
const TRIALS = 3

for (const name of [
  'closing braces',
  'closing brackets',
  'commas in a flow sequence',
  'colons in a flow sequence',
  'bad escapes',
]) {
  test(`${name} cost no more than a good text of that length`, () => {
    const yaml = parser({ name: 'YAML', limit: LENGTH, shapes: {}, read: parseYaml })
    const cost = (shape: Shape): number => nanoseconds(yaml.open(write(shape, LENGTH)), TRIALS)
    const shape = YAML_SHAPES[name]
    assert.ok(shape !== undefined)
    const good = cost(repeat('a,', '[', 'a]'))
    const bad = cost(shape)
    assert.ok(bad <= 2 * good, `${bad.toFixed(0)} ns, ${good.toFixed(0)} for a good text`)
  })
}
