import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SILENT } from '../../kit/api/ports.ts'
import { systemClock } from '../../kit/io/world/clock.ts'
import { createCA, issueCertificate } from '../../pki/io/pki.ts'
import { warnOfExpiry } from './own-certificates.ts'

const DAY_MS = 86_400_000
const ca = createCA({ commonName: 'ca' })

/** Log messages and levels for a certificate with this lifetime, this many days after it was issued. */
function warnings(days: number, afterDays: number): readonly string[] {
  const { certPem } = issueCertificate(ca, { commonName: 'gateway', usage: 'server', days })
  const said: string[] = []
  const sayAs =
    (level: string) =>
    (message: string, fields?: object): void =>
      void said.push(`${level}: ${message} ${JSON.stringify(fields)}`)
  const log = { ...SILENT, warn: sayAs('warn'), error: sayAs('error') }
  const clock = { ...systemClock, now: () => Date.now() + afterDays * DAY_MS }
  warnOfExpiry(() => [{ name: 'serving', pem: certPem }], clock, log)()
  return said
}

test('30 days before a certificate of a year expires there is a warning; before there is none', () => {
  assert.deepEqual(warnings(365, 334), [])
  assert.match(
    warnings(365, 336)[0] ?? '',
    /^warn: a certificate of the gateway expires soon \{"certificate":"serving","at":"20/,
  )
})

test('one that has expired is an error: clients refuse it', () => {
  assert.match(
    warnings(365, 366)[0] ?? '',
    /^error: a certificate of the gateway has expired \{"certificate":"serving"/,
  )
})

test('a certificate of a month is replaced every month: the last fifth of its life counts', () => {
  assert.deepEqual(warnings(30, 20), [])
  assert.equal(warnings(30, 25).length, 1)
})
