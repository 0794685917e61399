import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  BAD_NAME,
  BAD_VALUE,
  CONTENT_LENGTH,
  KNOWN_FLAGS,
  nameFlags,
  PSEUDO_STATUS,
  TE,
  valueFlags,
} from './field-rules.ts'
import { KNOWN_NAMES, KNOWN_NUMBERS, knownNumber } from './static.ts'

function flagsOfName(name: string): number {
  const octets = Buffer.from(name, 'latin1')
  return nameFlags(octets, 0, octets.length)
}

function flagsOfValue(value: string, name = 0): number {
  const octets = Buffer.from(` ${value} `, 'latin1')
  return valueFlags(name, octets, 1, octets.length - 1)
}

test('a name is a token in lower case (RFC 9113 section 8.2.1)', () => {
  for (let octet = 0; octet < 256; octet++) {
    const char = String.fromCharCode(octet)
    const good = /[!#$%&'*+\-.^_`|~0-9a-z]/.test(char)
    assert.equal(flagsOfName(`a${char}a`), good ? 0 : BAD_NAME, `octet ${octet}`)
  }
  assert.equal(flagsOfName(''), BAD_NAME)
  assert.equal(flagsOfName(':unknown'), BAD_NAME)
})

test('a value has no control character but HTAB, and no blank at its ends (RFC 9110 section 5.5)', () => {
  for (let octet = 0; octet < 256; octet++) {
    const char = String.fromCharCode(octet)
    const good = octet === 9 || (octet >= 0x20 && octet !== 0x7f)
    assert.equal(flagsOfValue(`a${char}a`), good ? 0 : BAD_VALUE, `octet ${octet}`)
    const edge = good && octet !== 9 && octet !== 0x20
    for (const value of [`${char}a`, `a${char}`, char]) {
      assert.equal(flagsOfValue(value), edge ? 0 : BAD_VALUE, JSON.stringify(value))
    }
  }
  assert.equal(flagsOfValue(''), 0)
})

test('te allows "trailers" and nothing else', () => {
  for (const value of ['trailers', 'TRAILERS']) assert.equal(flagsOfValue(value, TE), 0)
  for (const value of ['', 'gzip', 'trailer', 'trailerss', 'trailers, gzip']) {
    assert.equal(flagsOfValue(value, TE), BAD_VALUE, value)
    assert.equal(flagsOfValue(value), 0, value)
  }
})

test('known names are found by their octets, and have their flags', () => {
  for (const [number, name] of KNOWN_NAMES.entries()) {
    const octets = Buffer.from(`xx${name}yy`, 'latin1')
    assert.equal(knownNumber(octets, 2, octets.length - 2), number, name)
    assert.equal(knownNumber(octets, 2, octets.length - 1), -1, name)
    assert.equal(KNOWN_NUMBERS.get(name), number)
  }
  assert.equal(knownNumber(Buffer.from(''), 0, 0), -1)
  const flags = (name: string): number | undefined => KNOWN_FLAGS[KNOWN_NUMBERS.get(name) ?? -1]
  assert.equal(flags(':status'), PSEUDO_STATUS)
  assert.equal(flags('te'), TE)
  assert.equal(flags('content-length'), CONTENT_LENGTH)
  assert.equal(flags('accept'), 0)
  for (const name of ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']) {
    assert.equal(flags(name), BAD_NAME, name)
  }
})
