import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stall } from '../../kit/io/stalls/stall-watch.ts'
import { stallLines } from './report-stalls.ts'

function lines(): { write: ReturnType<typeof stallLines>; written: (readonly [string, string, unknown])[] } {
  const written: (readonly [string, string, unknown])[] = []
  const writeAs =
    (level: string) =>
    (message: string, fields: unknown): void =>
      void written.push([level, message, fields])
  return { write: stallLines('0', { warn: writeAs('warn'), info: writeAs('info') }), written }
}

const away: Stall = { step: 'off-cpu', during: 'http2', ms: 60, cpuMs: 2, auditId: 'a' }
const slow: Stall = { step: 'http2', during: 'http2', ms: 60, cpuMs: 58, auditId: 'a' }

test('what the machine did to a thread is one line a minute, and no warning', () => {
  const { write, written } = lines()
  // Ten per second, for ten minutes.
  for (let i = 0; i < 6_000; i++) write({ ...away, ms: i === 7 ? 110 : 60 }, i * 100)
  assert.equal(written.length, 10)
  const message = 'the machine did not let a thread run'
  assert.deepEqual(written.slice(0, 2), [
    ['info', message, { thread: '0', times: 1, milliseconds: 60, longestMilliseconds: 60 }],
    ['info', message, { thread: '0', times: 600, milliseconds: 36_050, longestMilliseconds: 110 }],
  ])
})

test('what the gateway did is a warning, one a second, whatever else there is', () => {
  const { write, written } = lines()
  for (let ms = 0; ms < 2_000; ms += 100) {
    write(away, ms)
    write(slow, ms)
  }
  assert.deepEqual(
    written.map(([level]) => level),
    ['info', 'warn', 'warn'],
  )
  assert.deepEqual(written[2]?.[2], {
    thread: '0',
    step: 'http2',
    milliseconds: 60,
    cpuMilliseconds: 58,
    auditId: 'a',
    notLogged: 9,
  })
})
