import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { OTHER_SLOT, USER_SLOTS } from './directory-room.ts'
import { readRecordingName, recordingName, slotInName } from './file-name.ts'

const UUID = '6d1f0b1c-0000-4000-8000-000000000000'

test('whatever a cluster is called, its recordings have names that say the day and the slot', () => {
  const day = fc.date({ min: new Date('2020-01-01'), max: new Date('2099-12-31'), noInvalidDate: true })
  fc.assert(
    fc.property(day, fc.string({ unit: 'binary' }), fc.nat(USER_SLOTS - 1), (date, cluster, slot) => {
      const name = recordingName({ nowMs: date.getTime(), cluster, slot, uuid: UUID })
      const of = { day: date.toISOString().slice(0, 10).replaceAll('-', '/'), slot }
      assert.deepEqual(readRecordingName(name), { ...of, isPart: false })
      assert.deepEqual(readRecordingName(`${name}.part`), { ...of, isPart: true })
      assert.ok(name.length + '.part'.length <= 255)
    }),
  )
})

test('another file is not a recording', () => {
  const good = `20260102T030405Z_prod_0ff_${UUID}.session`
  assert.equal(slotInName(good), 255)
  for (const name of [
    'a.session',
    `${good}.part.part`,
    `x${good}`,
    good.replace('0ff', '0fg'),
    good.replace('prod', '../prod'),
    good.replace('prod', 'a_b'),
  ]) {
    assert.equal(readRecordingName(name), undefined, name)
    assert.equal(slotInName(name), OTHER_SLOT)
  }
})
