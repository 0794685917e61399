import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WaitingFiles } from './waiting-files.ts'

const nameOf = (second: number): string =>
  `20260102T0304${String(second).padStart(2, '0')}Z_prod_0ff_6d1f0b1c-0000-4000-8000-000000000000.session`
const [FIRST, SECOND, THIRD] = [nameOf(1), nameOf(2), nameOf(3)]

function look(files: WaitingFiles, names: readonly string[], changedMs = 1000): readonly string[] {
  files.looking()
  for (const name of names) files.see({ name, bytes: 10, changedMs })
  files.looked()
  return files.next()
}

test('the oldest comes first, and one that fails after all others, as often as it is found again', () => {
  const files = new WaitingFiles()
  assert.equal(files.oldestMs, Number.POSITIVE_INFINITY)
  assert.deepEqual(look(files, [SECOND, 'other', FIRST]), [FIRST, SECOND])
  assert.deepEqual([files.count, files.oldestMs], [2, 1000])
  files.failed(FIRST)
  for (let looks = 0; looks < 3; looks++) {
    assert.deepEqual(look(files, [FIRST, THIRD, SECOND]), [SECOND, THIRD, FIRST])
  }
  files.looking()
  files.see({ name: FIRST, bytes: 10, changedMs: 1000 })
  files.failed(SECOND)
  files.failed(SECOND)
  assert.deepEqual(
    look(files, [FIRST, THIRD, SECOND]),
    [THIRD, FIRST, SECOND],
    'that look was broken off, and what failed in the meantime is known',
  )
  look(files, [])
  assert.deepEqual(look(files, [FIRST, SECOND]), [FIRST, SECOND], 'those that have been gone are as new')
})

test('a file that is being written is left alone, one that its gateway has left behind is not', () => {
  const files = new WaitingFiles()
  const part = `${FIRST}.part`
  let looks = 0
  for (let changedMs = 0; changedMs < 5; changedMs++) {
    for (let again = 0; again < 300; again++) assert.deepEqual(look(files, [part], changedMs), [])
  }
  for (; look(files, [part], 5).length === 0; looks++) assert.ok(looks < 1000)
  assert.equal(looks, 360)
  assert.deepEqual([files.next(), files.count], [[part], 1])
})

test('of many, the oldest are known, and all are counted', () => {
  const files = new WaitingFiles()
  const day = (n: number): string => FIRST.replace('20260102', String(20_000_101 + n))
  const names = Array.from({ length: 5000 }, (_, n) => day(4999 - n))
  assert.deepEqual(look(files, names), names.toReversed().slice(0, 512))
  assert.equal(files.count, 5000)
})
