import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { RECORDING_HEAD_BYTES, RecordingOpener, RecordingSeal } from './sealed-recording.ts'

const KEY = randomBytes(32)
const TEXTS = ['first\n', 'second\n', '', 'x'.repeat(1000), 'last\n']

function sealed(key = KEY): { head: Buffer; chunks: Buffer[] } {
  const seal = new RecordingSeal(key)
  const chunks = TEXTS.map((text, at) => seal.seal(Buffer.from(text), at === TEXTS.length - 1))
  return { head: seal.head, chunks }
}

function opened(head: Buffer, chunks: readonly Buffer[], key = KEY, pieces = 1 << 20): [text: string, end: string] {
  const opener = new RecordingOpener(head, key)
  const bytes = Buffer.concat(chunks)
  let text = ''
  for (let at = 0; at < bytes.length; at += pieces) {
    for (const chunk of opener.open(bytes.subarray(at, at + pieces))) text += chunk.toString()
  }
  return [text, opener.end]
}

test('what was sealed opens, however it is read', () => {
  const { head, chunks } = sealed()
  assert.ok(RecordingOpener.isRecording(head))
  for (const pieces of [1, 7, 100_000])
    assert.deepEqual(opened(head, chunks, KEY, pieces), [TEXTS.join(''), 'complete'])
  assert.ok(!Buffer.concat(chunks).includes('second'))
})

test('a file that breaks off opens up to there, and is not complete', () => {
  const { head, chunks } = sealed()
  const bytes = Buffer.concat(chunks)
  for (let length = 0; length < bytes.length; length += 13) {
    const [text, end] = opened(head, [bytes.subarray(0, length)])
    assert.ok(TEXTS.join('').startsWith(text))
    assert.equal(end, 'cut')
  }
  assert.deepEqual(opened(head, chunks.slice(0, 2)), ['first\nsecond\n', 'cut'])
})

test('what was changed, reordered, left out, repeated, appended or taken from another file is damaged', () => {
  const { head, chunks } = sealed()
  const other = sealed()
  const [a, b, c, d, e] = chunks
  assert.ok(a && b && c && d && e)
  for (const [name, given, text] of [
    ['reordered', [b, a, c, d, e], ''],
    ['left out', [a, c, d, e], 'first\n'],
    ['repeated', [a, a, b, c, d, e], 'first\n'],
    ['of another file', [a, other.chunks[1] ?? a, c, d, e], 'first\n'],
    ['an end that is moved up', [a, e], 'first\n'],
    ['appended', [...chunks, a], TEXTS.join('')],
    ['a length that is announced', [a, Buffer.from([255, 255, 255, 255])], 'first\n'],
  ] as const) {
    assert.deepEqual(opened(head, given), [text, 'damaged'], name)
  }
  const bytes = Buffer.concat(chunks)
  for (let at = 0; at < bytes.length; at += 11) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    const [text, end] = opened(head, [changed])
    assert.ok(end !== 'complete' && TEXTS.join('').startsWith(text), `${at}`)
  }
  assert.deepEqual(opened(other.head, chunks), ['', 'damaged'])
  assert.deepEqual(opened(head, chunks, randomBytes(32)), ['', 'damaged'])
})

test('other files are none', () => {
  const { head } = sealed()
  assert.ok(!RecordingOpener.isRecording(head.subarray(1)))
  assert.ok(!RecordingOpener.isRecording(Buffer.alloc(RECORDING_HEAD_BYTES)))
})
