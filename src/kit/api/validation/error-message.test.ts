import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorMessage, errorWithFix } from './error-message.ts'
import { UserError } from './field-errors.ts'

test('the text of what was thrown is its message, without its class', () => {
  assert.equal(errorMessage(new TypeError('no such host')), 'no such host')
  assert.equal(errorMessage('a text'), 'a text')
  assert.equal(errorMessage(undefined), 'undefined')
})

test('what the operator can do is said where it is known', () => {
  assert.equal(
    errorWithFix(new UserError('--tls-cert-file is missing', 'give both')),
    '--tls-cert-file is missing; give both',
  )
  assert.equal(errorWithFix(new Error('no such host')), 'no such host')
})
