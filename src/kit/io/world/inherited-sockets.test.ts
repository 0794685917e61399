import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UserError } from '../../api/validation/field-errors.ts'
import { parseSocketAddress } from '../../core/listen-address.ts'
import { takeInherited } from './inherited-sockets.ts'

const PID = 42

function take(text: string, env: Readonly<Record<string, string>>): readonly number[] {
  const address = parseSocketAddress(text)
  assert.ok(!('error' in address))
  return takeInherited(address, '--listen', { env: { LISTEN_PID: String(PID), ...env }, pid: PID })
}

test('sockets by name, every one of that name, and by number; each once', () => {
  const names = { LISTEN_FDS: '4', LISTEN_FDNAMES: 'https:control:https' }
  assert.deepEqual(take('systemd:https', names), [3, 5])
  assert.deepEqual(take('systemd:control', names), [4])
  assert.deepEqual(
    take('systemd:unknown', names),
    [6],
    'a socket without a name, as sd_listen_fds_with_names(3) calls it',
  )
  assert.deepEqual(take('fd:77', {}), [77])
  for (const again of ['fd:5', 'systemd:https']) {
    assert.throws(() => take(again, names), { message: /--listen systemd:https is the same socket/ })
  }
  assert.deepEqual(take('127.0.0.1:1', names), [])
})

test('what is missing is said, with what to do', () => {
  const table: [Readonly<Record<string, string>>, RegExp][] = [
    [{ LISTEN_FDS: '' }, /LISTEN_FDS is not set/],
    [{ LISTEN_FDS: 'x' }, /LISTEN_FDS is "x"/],
    [{ LISTEN_FDS: '0' }, /LISTEN_FDS is "0"/],
    [{ LISTEN_FDS: '1', LISTEN_PID: '41', LISTEN_FDNAMES: 'other' }, /meant for process 41 .* this is 42/],
    [{ LISTEN_FDS: '1', LISTEN_PID: '', LISTEN_FDNAMES: 'other' }, /LISTEN_PID/],
    [{ LISTEN_FDS: '2', LISTEN_FDNAMES: 'a:b:other' }, /the names are a, b$/],
    [{ LISTEN_FDS: '1' }, /the names are unknown$/],
  ]
  for (const [env, message] of table) {
    assert.throws(
      () => take('systemd:other', env),
      (error: unknown) => error instanceof UserError && message.test(error.message) && error.fix !== '',
      JSON.stringify(env),
    )
  }
})
