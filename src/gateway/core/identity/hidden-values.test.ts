import assert from 'node:assert/strict'
import { test } from 'node:test'
import { REDACTED } from '../../../kit/core/text/redact.ts'
import { HiddenValues, isTooShort } from './hidden-values.ts'

const SECRET = 'pä"s\\w/o+r d&%=~\'(é'

test('a value goes in each encoding, and the text around it stays', () => {
  const hidden = new HiddenValues([SECRET])
  for (const form of [
    SECRET,
    JSON.stringify(SECRET).slice(1, -1),
    JSON.stringify(JSON.stringify(SECRET)).slice(3, -3),
    encodeURIComponent(SECRET),
    encodeURIComponent(SECRET).replaceAll(/%../g, (code) => code.toLowerCase()),
    new URLSearchParams({ a: SECRET }).toString().slice(2),
  ]) {
    assert.equal(hidden.hide(`a ${form} b ${form}`), `a ${REDACTED} b ${REDACTED}`)
  }
})

test('a value goes in base64 wherever it begins there', () => {
  const hidden = new HiddenValues([SECRET])
  for (const encoding of ['base64', 'base64url'] as const) {
    for (const user of ['', 'u:', 'us:', 'use:', 'user:']) {
      const shown = hidden.hide(Buffer.from(`${user}${SECRET}:after`).toString(encoding))
      const [before = '', after = ''] = shown.split(REDACTED)
      assert.ok(shown.includes(REDACTED))
      // Only the neighbours are left, without a whole character of the value.
      assert.ok(Buffer.from(before, encoding).toString('latin1').startsWith(user.slice(0, before.length)))
      assert.ok(before.length <= Math.ceil((user.length * 8) / 6) && after.replaceAll('=', '').length <= 10, shown)
    }
  }
})

test('a long value goes also where it was cut, and values that overlap go as one', () => {
  const long = Array.from({ length: 100 }, (_, i) => String.fromCharCode(65 + (i % 58))).join('')
  const hidden = new HiddenValues([long, 'after-it', 'it-more!'])
  assert.equal(hidden.hide(`x ${long}.`), `x ${REDACTED}.`)
  assert.equal(hidden.hide(`${long.slice(0, 32)}...`), `${REDACTED}...`)
  assert.equal(hidden.hide('after-it-more! y'), `${REDACTED} y`)
})

test('keys go line by line, but not their first and last lines', () => {
  const key = '-----BEGIN PRIVATE KEY-----\nMIGHabcdefgh\nijklmnopqrst\n-----END PRIVATE KEY-----\n'
  const hidden = new HiddenValues([key])
  assert.equal(hidden.hide('MIGHabcdefgh -----BEGIN PRIVATE KEY-----'), `${REDACTED} -----BEGIN PRIVATE KEY-----`)
  assert.equal(hidden.hide('x\\nijklmnopqrst'), `x\\n${REDACTED}`)
})

test('short values stay, and are told', () => {
  assert.equal(new HiddenValues(['prod', '']).hide('prod'), 'prod')
  assert.deepEqual(['prod', '', 'secret', 'a\nb'].map(isTooShort), [true, false, false, true])
})

test('how much is compared grows with the text, not with the number of values', () => {
  // Comparing with each value in turn would take hours.
  const values = Array.from({ length: 20_000 }, (_, i) => `same-beginning-of-all-values-${i}-x`)
  const hidden = new HiddenValues(values)
  const text = 'same-beginning-of-all-values-'.repeat(50_000)
  assert.equal(hidden.hide(text), text)
  assert.equal(hidden.hide(`${text}7-x`).endsWith(REDACTED), true)
})
