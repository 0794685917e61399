import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { userCharge } from '../../kit/core/shares/charge.ts'
import { allocateRoom } from '../core/recording/directory-room.ts'
import { MAX_OPEN_RECORDINGS, type OpenRecording, Recordings } from './recordings.ts'

const ALICE = userCharge('prod', 'alice', 1)
const BOB = userCharge('prod', 'bob', 1)
const CAROL = userCharge('prod', 'carol', 1)
const SETTINGS = { key: Buffer.alloc(32), maxBytes: 100_000, maxDirBytes: 100_000_000 }

test('one user with many sessions does not keep those of others from being recorded', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'recordings-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const recordings = new Recordings()
  recordings.settings = { ...SETTINGS, dir, room: allocateRoom() }
  let names = 0
  const events = { onDrained: () => undefined, onFailed: () => assert.fail() }
  const open = (charge: typeof ALICE): OpenRecording | string =>
    recordings.open(`${names++}.session`, 'header\n', events, charge)
  const ofAlice: OpenRecording[] = []
  let last = open(ALICE)
  for (; typeof last !== 'string'; last = open(ALICE)) ofAlice.push(last)
  assert.match(last, /sessions are being recorded by this thread/)
  assert.ok(ofAlice.length > MAX_OPEN_RECORDINGS / 2 && ofAlice.length < MAX_OPEN_RECORDINGS)
  assert.match(recordings.unavailableTo(ALICE), /sessions are being recorded by this thread/)
  const others = [BOB, CAROL, BOB].map((charge) => {
    assert.equal(recordings.unavailableTo(charge), '')
    return open(charge)
  })
  assert.equal(typeof open(ALICE), 'string')
  for (const one of [...ofAlice, ...others]) {
    assert.ok(typeof one !== 'string')
    one.end('end\n', false)
  }
  while (recordings.size > 0) await yieldToEventLoop()
  const again = open(ALICE)
  assert.ok(typeof again !== 'string')
  again.end('end\n', false)
  while (recordings.size > 0) await yieldToEventLoop()
})

test('one user whose recordings fill the directory does not keep those of others from being recorded, in any thread', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'recordings-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const room = allocateRoom()
  const threads = [new Recordings(), new Recordings()]
  for (const thread of threads) thread.settings = { ...SETTINGS, dir, maxDirBytes: 300_000, room }
  const events = { onDrained: () => undefined, onFailed: () => assert.fail() }
  const line = `${'x'.repeat(1000)}\n`
  const opened: OpenRecording[] = []
  /** @returns why it ended */
  const record = (at: number, charge: typeof ALICE): string => {
    const recording = threads[at]?.open(`${opened.length}.session`, 'header\n', events, charge)
    if (typeof recording !== 'object') return recording ?? ''
    opened.push(recording)
    let why = ''
    for (let n = 0; why === '' && n < 10; n++) why = recording.add(line)
    recording.end('end\n', false)
    return why
  }
  let why = ''
  for (let n = 0; why === ''; n++) why = record(n % 2, ALICE)
  assert.match(why, /this user's recordings have their share of it \(--session-recording-max-dir-bytes\)/)
  for (const thread of threads) assert.match(thread.unavailableTo(ALICE), /have their share/)
  assert.equal(record(0, BOB), '')
  assert.match(record(1, ALICE), /have their share/)
  while (threads.some(({ size }) => size > 0)) await yieldToEventLoop()
})
