// What a kube-apiserver says about expressions (test/e2e/jwt-parity.test.ts asks one) is what they are here.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { evaluate } from './evaluate.ts'
import { isInvalidExpression, parseExpression } from './expression.ts'
import { Cost, ExpressionFault } from './values.ts'

interface Table {
  readonly claims: unknown
  readonly values: Readonly<Record<string, unknown>>
  readonly faults: readonly string[]
  readonly refused: readonly string[]
  readonly alsoRefused: readonly string[]
}

const FILE = new URL('../../../../test/data/jwt-expressions.json', import.meta.url)
const { claims, values, faults, refused, alsoRefused } = JSON.parse(readFileSync(FILE, 'utf8')) as Table

/** ExpressionFault = it has no value; undefined = it is refused when it is written. */
function resultOf(text: string): unknown {
  const parsed = parseExpression(text, 'claims')
  if (isInvalidExpression(parsed)) {
    assert.match(parsed.invalid, /\S/)
    return undefined
  }
  try {
    return evaluate(parsed, claims, new Cost())
  } catch (error) {
    if (error instanceof ExpressionFault) return ExpressionFault
    throw error
  }
}

test('values', () => {
  for (const [text, value] of Object.entries(values)) assert.deepEqual(resultOf(text), value, text)
})

test('expressions without a value', () => {
  for (const text of faults) assert.equal(resultOf(text), ExpressionFault, text)
})

test('what is refused when it is written', () => {
  for (const text of [...refused, ...alsoRefused]) assert.equal(resultOf(text), undefined, text)
})
