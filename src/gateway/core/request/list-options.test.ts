import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isTrue, nameRequired, readListQuery } from './list-options.ts'
import { hasTooManyParameters, QueryReader } from './query-reader.ts'

function required(query: string, fieldSelector: string): string {
  return nameRequired(readListQuery(`${query}&fieldSelector=${encodeURIComponent(fieldSelector)}`))
}

function queryValue(query: string, key: string): string | undefined {
  const reader = new QueryReader(query)
  while (reader.next()) {
    const value = reader.key === key ? reader.value() : undefined
    if (value !== undefined) return value
  }
  return undefined
}

test('QueryReader: the first good pair wins', () => {
  const rows: readonly (readonly [string, string | undefined])[] = [
    ['', undefined],
    ['a', ''],
    ['a=', ''],
    ['a=1&a=2', '1'],
    ['b=1&a=2', '2'],
    ['ab=1', undefined],
    ['a=1;2&a=3', '3'],
    ['a=%zz&a=3', '3'],
    ['%61=x%20y+z', 'x y z'],
    ['a=b=c', 'b=c'],
    ['=a', undefined],
    ['a=%E4%BD%A0', '你'],
  ]
  for (const [query, expected] of rows) assert.equal(queryValue(query, 'a'), expected, query)
})

test('QueryReader equals URLSearchParams where Go and the web agree', () => {
  const part = fc.stringMatching(/^[a-c +%2061]{0,4}$/).filter((text) => !/%(?![0-9a-f]{2})/i.test(text))
  fc.assert(
    fc.property(fc.array(fc.tuple(part, part)), fc.constantFrom('a', 'b', 'a0'), (pairs, key) => {
      const query = pairs.map(([name, value]) => `${name}=${value}`).join('&')
      assert.equal(queryValue(query, key) ?? null, new URLSearchParams(query).get(key))
    }),
  )
})

test('isTrue: only 0 and false are false', () => {
  for (const query of ['w=0', 'w=false', 'w=FaLsE', '', 'x=1'])
    assert.equal(isTrue(queryValue(query, 'w')), false, query)
  for (const query of ['w', 'w=', 'w=no', 'w=00', 'w=%20false'])
    assert.equal(isTrue(queryValue(query, 'w')), true, query)
})

test('nameRequired gives the name that an equality requires', () => {
  const name = fc.stringMatching(/^[a-z][-a-z0-9.]{0,10}$/)
  const other = fc.constantFrom('', 'metadata.namespace=x', 'spec.nodeName!=y', 'a=b\\,c')
  fc.assert(
    fc.property(
      name,
      fc.constantFrom('=', '=='),
      fc.array(other),
      fc.array(other),
      (wanted, operator, before, after) => {
        const selector = [...before, `metadata.name${operator}${wanted}`, ...after].join(',')
        assert.equal(required('', selector), wanted)
        assert.equal(required('', `${selector},broken`), '')
        assert.equal(required('limit=x', selector), '')
        assert.equal(required('labelSelector=a%3D%3D%3Db', selector), '')
      },
    ),
  )
})

test('the smaller of two names counts, as in the sorted terms', () => {
  assert.equal(required('', 'metadata.name=b,metadata.name=a,metadata.name=c'), 'a')
  assert.equal(required('', 'metadata.name==a,metadata.name=b'), 'a')
  assert.equal(required('', 'metadata.name=,metadata.name=a'), '')
})

test('9999 parameters are read, also empty ones; of more the reader is not asked', () => {
  assert.equal(queryValue(`${'&'.repeat(9_999)}a=1`, 'a'), '1')
  assert.equal(queryValue(`b=${'b'.repeat(20_000)}&a=1`, 'a'), '1')
  const path = '/a&b?'
  assert.equal(hasTooManyParameters(`${path}${'&'.repeat(9_998)}a=1`, path.length), false)
  assert.equal(hasTooManyParameters(`${path}${'&'.repeat(9_999)}a=1`, path.length), true)
  assert.equal(hasTooManyParameters(`${path}${'a'.repeat(20_000)}`, path.length), false)
})
