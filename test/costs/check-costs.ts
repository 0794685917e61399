// The tests of a table of parsers: reading stays linear up to what is permitted, in time and in memory.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { growth, heldBytes, MOST } from './measure.ts'
import type { Parser } from './parser.ts'
import { KIB, type Shape } from './shapes.ts'

/** As far as the inputs grow in every run: a square shows by then. In the long suite they grow to what is permitted. */
const SHORT: number = 128 * KIB

export function checkCosts(parsers: readonly Parser[]): void {
  for (const parser of parsers) {
    describe(parser.name, () => {
      for (const [name, shape] of Object.entries(parser.shapes)) {
        test(name, () => check(parser, shape, Math.min(parser.limit, SHORT)))
      }
      if (parser.limit <= SHORT) return
      test(`${parser.name} up to ${parser.limit} characters (long)`, () => {
        for (const [name, shape] of Object.entries(parser.shapes)) check(parser, shape, parser.limit, name)
      })
    })
  }
}

function check(parser: Parser, shape: Shape, limit: number, name = ''): void {
  const { reference, referenceNs, length, ns, ratio } = growth(parser, shape, MOST, limit)
  const found = `${ns.toFixed(1)} ns for each of ${length} characters, ${referenceNs.toFixed(1)} for each of ${reference}`
  assert.ok(ratio <= MOST, `${name} ${found}`)
  if (parser.heap === undefined) return
  const held = heldBytes(parser, shape, limit, parser.heap)
  assert.ok(held <= parser.heap, `${name} ${held.toFixed(1)} bytes are held for a character, ${parser.heap} permitted`)
}
