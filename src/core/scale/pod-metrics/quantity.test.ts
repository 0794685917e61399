// Quantities as ParseQuantity reads them, and what it refuses.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseQuantity } from './quantity.ts'

const CAP = 2 ** 63

for (const [text, value] of Object.entries({
  '0': 0,
  '-0': -0,
  '12': 12,
  '+7': 7,
  '-3': -3,
  '1.5': 1.5,
  '1.': 1,
  '.5': 0.5,
  '1500m': 1.5,
  '100m': 0.1,
  '3u': 3e-6,
  '7n': 7e-9,
  '2k': 2000,
  '1.1k': 1100,
  '4M': 4e6,
  '5G': 5e9,
  '6T': 6e12,
  '7P': 7e15,
  '8E': 8e18,
  '1Ki': 1024,
  '1.5Mi': 1.5 * 2 ** 20,
  '-2Gi': -(2 ** 31),
  '1Ti': 2 ** 40,
  '1Pi': 2 ** 50,
  '1Ei': 2 ** 60,
  '12e3': 12_000,
  '12E3': 12_000,
  '5e-3': 0.005,
  '5e+3': 5000,
  '9e999': CAP,
  '-9e999': -CAP,
  '99E': CAP,
  '-99Ei': -CAP,
})) {
  test(`${text} is ${value}`, () => assert.equal(parseQuantity(text), value))
}

const none = [
  '',
  ' ',
  ' 1',
  '1 ',
  '.',
  '-',
  '+-1',
  '--1',
  '1..2',
  '1.2.3',
  'm',
  '1mm',
  '1K',
  '1ki',
  '1i',
  '1e',
  '1e+',
  '1e1.5',
]
const hostile = [
  '0x10',
  '1_000',
  'NaN',
  'Infinity',
  '1Ki3',
  '1e99999999999',
  '१',
  '1\n',
  `${'1'.repeat(64)}m`,
  '1constructor',
]
for (const text of [...none, ...hostile]) {
  test(`${JSON.stringify(text)} is none`, () => assert.equal(parseQuantity(text), undefined))
}

test('thousandths are the same number as a decimal point, and order is kept', () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer(), (a, b) => {
      assert.equal(parseQuantity(`${a}m`), parseQuantity(`${a}e-3`))
      assert.equal(parseQuantity(`${a}m`), a / 1000)
      assert.equal((parseQuantity(`${a}m`) ?? 0) < (parseQuantity(`${b}m`) ?? 0), a < b)
    }),
  )
})
