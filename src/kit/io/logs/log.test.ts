import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger, type LogLevel } from './log.ts'

function logged(level: LogLevel, use: (log: ReturnType<typeof createLogger>) => void): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = []
  use(createLogger({ level, destination: { write: (line) => lines.push(JSON.parse(line)) } }))
  return lines
}

test('a line has ts, level, msg and the fields', () => {
  const [line] = logged('info', (log) => log.warn('endpoint is down', { cluster: 'prod', attempts: 2 }))
  assert.deepEqual(
    { ...line, ts: '' },
    { level: 'warn', ts: '', cluster: 'prod', attempts: 2, msg: 'endpoint is down' },
  )
  assert.match(String(line?.['ts']), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('lines below the level are not written', () => {
  const use = (log: ReturnType<typeof createLogger>): void => {
    log.debug('d')
    log.info('i')
    log.warn('w')
    log.error('e')
  }
  const messages = (level: LogLevel): unknown[] => logged(level, use).map((line) => line['msg'])
  assert.deepEqual(messages('debug'), ['d', 'i', 'w', 'e'])
  assert.deepEqual(messages('warn'), ['w', 'e'])
  assert.deepEqual(messages('error'), ['e'])
})

test('an error is its message; its stack is for debugging', () => {
  const error = new Error('connect ECONNREFUSED')
  const [plain] = logged('info', (log) => log.error('probe failed', { error }))
  assert.equal(plain?.['error'], 'connect ECONNREFUSED')
  assert.equal(plain?.['errorStack'], undefined)
  const [full] = logged('debug', (log) => log.error('probe failed', { error }))
  assert.match(String(full?.['errorStack']), /log\.test\.ts/)
})

test('secrets are not written', () => {
  const [line] = logged('info', (log) =>
    log.info('sent Bearer abcdefghijkl', {
      headers: { authorization: 'Bearer abcdefghijkl' },
      token: 't-0-p',
      key: 'k-1-q',
    }),
  )
  assert.doesNotMatch(JSON.stringify(line), /abcdefghijkl|t-0-p|k-1-q/)
})

test("fields cannot replace the line's own names", () => {
  const [line] = logged('info', (log) => log.info('true', { msg: 'false', level: 'x', ts: 'y' }))
  assert.equal(line?.['msg'], 'true')
  assert.equal(line?.['level'], 'info')
  assert.equal(line?.['msg_'], 'false')
})
