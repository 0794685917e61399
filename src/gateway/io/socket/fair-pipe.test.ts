import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { standsStill, waitFor } from '../../../../test/harness/wait.ts'
import type { Charge } from '../../../kit/api/stream.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'
import { FairPipe } from './fair-pipe.ts'

const CHUNK = Buffer.alloc(16 * 1024, 'x')
const BYTES = 2_000

function user(source: string): Charge {
  return { source, weight: 1, known: true }
}

/** Has `count` chunks ready to read. */
function sourceOf(count: number): Duplex {
  let left = count
  return new Duplex({
    read() {
      this.push(left-- > 0 ? CHUNK : null)
    },
    write: (_chunk, _encoding, done) => done(),
  })
}

/** Each write takes `ms`. */
function sink(onChunk: (chunk: Buffer) => void, ms = 0): Duplex {
  return new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      for (const since = performance.now(); performance.now() - since < ms; );
      onChunk(chunk)
      done()
    },
  })
}

test('one chunk of a user passes before most of what another one sends on 20 connections', async () => {
  const COUNT = 50
  let heavy = 0
  let before = -1
  for (let i = 0; i < 20; i++)
    new FairPipe(
      sourceOf(COUNT),
      sink(() => void heavy++, 0.05),
      user('heavy'),
    )
  new FairPipe(
    sourceOf(1),
    sink(() => (before = heavy)),
    user('light'),
  )
  await waitFor('all of it', () => heavy === 20 * COUNT && before >= 0)
  assert.ok(before <= 10 * COUNT, `${before} of ${20 * COUNT} chunks were first`)
})

test('everything arrives, in its order, and then the end', async () => {
  const sent = Array.from({ length: 3_000 }, (_, i) => Buffer.from(`${i},`))
  const from = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
  let got = ''
  const to = sink((chunk) => (got += chunk.toString()), 0.01)
  const pipe = new FairPipe(from, to, user('orderly'))
  for (const chunk of sent) from.push(chunk)
  from.push(null)
  await once(to, 'finish')
  assert.equal(got, sent.join(''))
  assert.equal(pipe.bytes, got.length)
})

test('what comes byte by byte is not read without end either', async () => {
  let given = 0
  const from = new Duplex({
    highWaterMark: 1,
    read() {
      given++
      setImmediate(() => this.push(given > BYTES ? null : Buffer.of(given % 256)))
    },
    write: (_chunk, _encoding, done) => done(),
  })
  let release = (): void => undefined
  let got = 0
  const to = new Duplex({
    read: () => undefined,
    highWaterMark: 1024 * 1024,
    write(chunk: Buffer, _encoding, done) {
      got += chunk.length
      if (got === 1) release = done
      else done()
    },
  })
  let told = 0
  new FairPipe(from, to, user('dribbling'), () => void told++)
  await waitFor('the pause', () => from.isPaused())
  assert.ok(given < BYTES / 2, `${given}`)
  assert.equal(told, 1)
  release()
  await once(to, 'finish')
  assert.equal(got, BYTES)
  assert.equal(told % 2, 0)
})

test('what is not taken is not read', async () => {
  let asked = 0
  const from = new Duplex({
    read() {
      asked++
      this.push(CHUNK)
    },
    write: (_chunk, _encoding, done) => done(),
  })
  let release = (): void => undefined
  let taken = 0
  const to = new Duplex({
    read: () => undefined,
    write(_chunk, _encoding, done) {
      taken++
      release = done
    },
  })
  new FairPipe(from, to, user('fast'))
  await waitFor('the first one', () => taken === 1)
  await standsStill('what is read', () => asked)
  assert.equal(taken, 1)
  assert.ok(asked < 20, `${asked} chunks read`)
  release()
  await waitFor('the next one', () => taken === 2)
  from.destroy()
  to.destroy()
})

test('what is left is passed on when the one side closes, and dropped when the other one does', async () => {
  for (const side of ['from', 'to'] as const) {
    const from = new Duplex({ read: () => undefined, write: (_chunk, _encoding, done) => done() })
    let got = 0
    const to = sink(() => void got++)
    const charge = user(`closing ${side}`)
    // Its slice is over.
    const nowMs = performance.now()
    threadScheduler.charge(threadScheduler.accountOf(charge, nowMs), nowMs - 1_000, nowMs)
    const kept = threadScheduler.keptBytes
    const pipe = new FairPipe(from, to, charge)
    from.push(CHUNK)
    await waitFor('it to be read', () => threadScheduler.keptBytes > kept || got > 0)
    if (side === 'from') pipe.flush()
    else to.destroy()
    await waitFor('nothing to be kept', () => threadScheduler.keptBytes === kept)
    if (side === 'from') assert.equal(got, 1)
    from.destroy()
    to.destroy()
  }
})

test('who goes on sending to a side that has closed is read no further than a little', async () => {
  const from = sourceOf(Number.POSITIVE_INFINITY)
  const to = sink(() => undefined)
  to.destroy()
  new FairPipe(from, to, user('late'))
  await waitFor('it to be paused for good', () => from.isPaused() && threadScheduler.waiting === 0)
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  assert.equal(from.isPaused(), true)
  from.destroy()
})
