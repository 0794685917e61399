import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type FieldTerm, parseFieldTerms } from './field-terms.ts'

const is = (field: string, value: string): FieldTerm => ({ field, value, negated: false })
const isNot = (field: string, value: string): FieldTerm => ({ field, value, negated: true })

test('field selectors are parsed as by kube-apiserver', () => {
  const rows: readonly (readonly [string, readonly FieldTerm[]])[] = [
    ['', []],
    [',', []],
    ['=', []],
    ['!=,a=b', [is('a', 'b')]],
    ['a=', [is('a', '')]],
    ['=a', [is('', 'a')]],
    ['a==b,c!=d,', [is('a', 'b'), isNot('c', 'd')]],
    [' a = b ', [is(' a ', ' b ')]],
    ['a=b\\,c\\=d\\\\', [is('a', 'b,c=d\\')]],
    ['a\\,b=c', [is('a\\,b', 'c')]],
    ['a!b=c', [is('a!b', 'c')]],
  ]
  for (const [text, terms] of rows) assert.deepEqual(parseFieldTerms(text), terms, text)
})

test('what is not a field selector is refused with the words of kube-apiserver', () => {
  const rows: readonly (readonly [string, string])[] = [
    ['a', "invalid selector: 'a'; can't understand 'a'"],
    ['a=b,c', "invalid selector: 'a=b,c'; can't understand 'c'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a===b', 'invalid field selector: unescaped character in value: 61'],
    ['a=b\\c', 'invalid field selector: invalid escape sequence: \\c'],
    ['a=b\\', 'invalid field selector: invalid escape sequence: \\'],
  ]
  for (const [text, message] of rows) assert.throws(() => parseFieldTerms(text), { name: 'SyntaxError', message }, text)
})
