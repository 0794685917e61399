// Real worker threads: their messages, and how their end is reported.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startThread, type Thread } from './threads.ts'

interface Told {
  readonly thread: Thread<unknown>
  readonly messages: unknown[]
  readonly errors: Error[]
  readonly ended: Promise<void>
}

function start(code: string, data: unknown = undefined): Told {
  const entry = new URL(
    `data:text/javascript,${encodeURIComponent(`import * as t from 'node:worker_threads';${code}`)}`,
  )
  const messages: unknown[] = []
  const errors: Error[] = []
  let onExit = (): void => undefined
  const ended = new Promise<void>((resolve) => {
    onExit = resolve
  })
  const events = {
    onMessage: (message: unknown) => void messages.push(message),
    onError: (error: Error) => void errors.push(error),
    onExit: () => onExit(),
  }
  const thread = startThread<unknown, unknown>(entry, 'test', data, events, { oldMiB: 64, youngMiB: 8 })
  return { thread, messages, errors, ended }
}

describe('a thread', () => {
  it('gets its data and messages, in order, and answers; shared memory is shared', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(4))
    const told = start(
      `Atomics.add(t.workerData.shared, 0, 7)
       t.parentPort.on('message', (m) => { t.parentPort.postMessage(m * 2); if (m === 3) process.exit(0) })`,
      { shared },
    )
    for (const n of [1, 2, 3]) told.thread.post(n)
    await told.ended
    assert.deepEqual([told.messages, told.errors, Atomics.load(shared, 0)], [[2, 4, 6], [], 7])
  })

  it('that needs more memory than its limit ends, and says why; this thread goes on', async () => {
    const told = start('const held = []; for (;;) held.push({ of: [held.length] })')
    await told.ended
    assert.equal(Reflect.get(told.errors[0] ?? {}, 'code'), 'ERR_WORKER_OUT_OF_MEMORY')
  })

  it('that throws reports the error, with the stack, before its end; this thread goes on', async () => {
    const told = start(`function breaks() { throw new Error('broken inside') }; setTimeout(breaks, 1)`)
    await told.ended
    assert.equal(told.errors[0]?.message, 'broken inside')
    assert.match(told.errors[0]?.stack ?? '', /breaks/)
  })

  it('with an unhandled rejection ends as well', async () => {
    const told = start(`Promise.reject(new Error('it was not caught'))`)
    await told.ended
    assert.equal(told.errors[0]?.message, 'it was not caught')
  })

  it('is ended in the middle of a loop', async () => {
    const told = start(`for (;;);`)
    await told.thread.terminate()
    await told.ended
    assert.deepEqual(told.errors, [])
  })

  it('has a number of its own, also afterwards', async () => {
    const [a, b] = [start(''), start('')]
    const ids = [a.thread.id, b.thread.id]
    await Promise.all([a.ended, b.ended])
    assert.deepEqual([a.thread.id, b.thread.id], ids)
    assert.ok(ids.every((id) => id > 0) && ids[0] !== ids[1])
  })
})
