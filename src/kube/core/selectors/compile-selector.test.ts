import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LabelSelector } from '../../../kit/api/validation/label-selector-schema.ts'
import { compileSelector, selectorText } from './compile-selector.ts'

function matches(selector: LabelSelector, labels: Record<string, string>): boolean {
  return compileSelector(selector).matches(labels)
}

function expression(key: string, operator: string, values?: readonly string[]): LabelSelector {
  return { matchExpressions: [{ key, operator, ...(values && { values }) }] } as LabelSelector
}

test('operators mean what they mean to Kubernetes', () => {
  const rows: readonly (readonly [LabelSelector, Record<string, string>, boolean])[] = [
    [{}, {}, true],
    [{}, { a: 'b' }, true],
    [{ matchLabels: { a: 'b' } }, { a: 'b', c: 'd' }, true],
    [{ matchLabels: { a: 'b' } }, { a: 'c' }, false],
    [{ matchLabels: { a: '' } }, { a: '' }, true],
    [{ matchLabels: { a: '' } }, {}, false],
    [expression('a', 'In', ['b', 'b']), { a: 'b' }, true],
    [expression('a', 'In', ['']), {}, false],
    [expression('a', 'NotIn', ['b']), {}, true],
    [expression('a', 'NotIn', ['b']), { a: 'b' }, false],
    [expression('a', 'NotIn', ['']), { a: '' }, false],
    [expression('a', 'Exists'), { a: '' }, true],
    [expression('a', 'Exists', []), {}, false],
    [expression('a', 'DoesNotExist'), { a: '' }, false],
    [{ matchLabels: { a: 'b' }, ...expression('a', 'In', ['b', 'c']) }, { a: 'b' }, true],
    [{ matchLabels: { a: 'b' }, ...expression('a', 'In', ['c']) }, { a: 'b' }, false],
    // Inherited properties are not labels.
    [expression('constructor', 'Exists'), {}, false],
    [expression('toString', 'DoesNotExist'), {}, true],
  ]
  for (const [selector, labels, expected] of rows) {
    assert.equal(matches(selector, labels), expected, `${JSON.stringify(selector)} ${JSON.stringify(labels)}`)
  }
})

test('what is wrong is named', () => {
  const rows: readonly (readonly [unknown, RegExp])[] = [
    [
      expression('a', 'in', ['b']),
      /^matchExpressions\[0\]: operator "in" must be one of In, NotIn, Exists, DoesNotExist$/,
    ],
    [expression('a', 'In', []), /^matchExpressions\[0\]: operator In needs at least one value$/],
    [expression('a', 'NotIn'), /operator NotIn needs at least one value/],
    [expression('a', 'Exists', ['b']), /operator Exists takes no values/],
    [expression('a', 'In', ['b c']), /^matchExpressions\[0\]: "b c" is not a valid label value$/],
    [expression('-a', 'Exists'), /"-a" is not a valid label key/],
    [{ matchLabels: { 'a/b/c': 'x' } }, /^matchLabels\[a\/b\/c\]: "a\/b\/c" is not a valid label key$/],
    [{ matchLabels: { a: 1 } }, /^matchLabels\[a\]: 1 is not a valid label value$/],
    [{ matchLabels: ['a'] }, /^matchLabels is not a map/],
    [{ matchExpressions: {} }, /^matchExpressions is not a list/],
    [{ matchExpressions: ['x'] }, /^matchExpressions\[0\]: nothing is not a valid label key$/],
    [{ matchExpressions: [{ key: 'a', operator: 'In', values: 'b' }] }, /values is not a list/],
    [JSON.parse('{"matchLabels":{"__proto__":"x"}}'), /"__proto__" is not a valid label key/],
    ['app=x', /not an object/],
  ]
  for (const [selector, message] of rows) {
    assert.throws(
      () => compileSelector(selector as LabelSelector),
      (error) => error instanceof SyntaxError && message.test(error.message),
      JSON.stringify(selector),
    )
  }
  assert.doesNotThrow(() => compileSelector({ matchLabels: null, matchExpressions: null } as unknown as LabelSelector))
})

test('as text for a list', () => {
  const selector: LabelSelector = {
    matchLabels: { app: 'www' },
    matchExpressions: [
      { key: 'tier', operator: 'In', values: ['a', 'b', 'a'] },
      { key: 'env', operator: 'NotIn', values: ['test'] },
      { key: 'x.io/y', operator: 'Exists' },
      { key: 'z', operator: 'DoesNotExist' },
    ],
  }
  assert.equal(selectorText(selector), 'app=www,tier in (a,b),env notin (test),x.io/y,!z')
  assert.equal(selectorText({}), '')
  assert.throws(() => selectorText(expression('a', 'Equals', ['b'])), SyntaxError)
})
