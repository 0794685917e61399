import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import fc from 'fast-check'
import '../../../../test/harness/property-seed.ts'
import { clusterCharge } from '../../../kit/core/shares/charge.ts'
import { OBJECT, PAGE } from '../../core/answers/answer-limits.ts'
import { AnswerBytes, threadAnswers } from './thread-answers.ts'

const MIB = 1024 * 1024
const { capacity, reserve } = threadAnswers.known

afterEach(() => assert.equal(threadAnswers.known.held, 0))

/** Chunk sizes, as a socket delivers them. */
const chunks = fc.infiniteStream(fc.integer({ min: 1, max: 256 * 1024 }))

function holding(name: string, weight = 1): AnswerBytes {
  return new AnswerBytes({ ...clusterCharge(name), weight })
}

/** Reads a response, and holds it. @returns the bytes for which there was memory */
function readAnswer(memory: AnswerBytes, length: number, sizes: Iterator<number>): number {
  let read = 0
  while (read < length) {
    const size = Math.min(length - read, sizes.next().value ?? 1)
    if (!memory.take(size)) break
    read += size
  }
  return read
}

/** Takes everything available, to the last byte. */
function takeAll(memory: AnswerBytes): number {
  let taken = 0
  for (let size = MIB; size >= 1; size /= 2) while (memory.take(size)) taken += size
  return taken
}

test('while one source holds all, another one reads a page, in whatever pieces it comes', () => {
  const weights = fc.integer({ min: 1, max: 8 })
  fc.assert(
    fc.property(weights, chunks, (weight, sizes) => {
      const [hog, other] = [holding('hog', weight), holding('other')]
      assert.equal(takeAll(hog), capacity)
      const read = readAnswer(other, PAGE.bytes, sizes)
      for (const memory of [hog, other]) memory.end()
      assert.equal(read, PAGE.bytes)
    }),
    { numRuns: 50 },
  )
})

test('a third one reads two thirds of a page, whatever the second one has got; more of them are promised nothing', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: capacity }), chunks, (length, sizes) => {
      const [hog, second, third, fourth] = [holding('hog'), holding('second'), holding('third'), holding('fourth')]
      takeAll(hog)
      readAnswer(second, length, sizes)
      const read = readAnswer(third, MIB, sizes)
      takeAll(second)
      takeAll(third)
      takeAll(fourth)
      const none = holding('fifth').take(1024 * 1024)
      const { held } = threadAnswers.known
      for (const memory of [hog, second, third, fourth]) memory.end()
      assert.equal(read, MIB)
      assert.equal(none, false)
      assert.ok(held <= capacity + reserve, `${held}`)
    }),
    { numRuns: 50 },
  )
})

test('what is given back goes to those who have less than their share: each of many gets an object, one after the other', () => {
  const hog = holding('hog')
  takeAll(hog)
  for (let i = 0; i < 20; i++) {
    const other = holding(`cluster-${i}`)
    let read = 0
    while (read < OBJECT.bytes) {
      if (other.take(1024)) read += 1024
      else {
        // Meanwhile the hog asks for more, and first.
        hog.give(1024)
        assert.equal(hog.take(2048), false)
      }
    }
    other.end()
    takeAll(hog)
  }
  hog.end()
})

test('why there is no room: who has its share learns it, and who has less', () => {
  const [hog, second, third] = [holding('hog'), holding('second'), holding('third')]
  takeAll(hog)
  assert.equal(hog.full().belowShare, false)
  takeAll(second)
  takeAll(third)
  assert.equal(third.full().belowShare, true)
  for (const memory of [hog, second, third]) memory.end()
})
