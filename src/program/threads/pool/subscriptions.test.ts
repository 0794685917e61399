// Calls and streams between the main thread and threads, both ends, with messages passed on by the test.

import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import type { AskOptions } from '../../../kit/core/topics/questions.ts'
import { type Emit, ThreadStream } from '../../../kit/core/topics/streams.ts'
import type { LogLevel } from '../../../kit/io/logs/log.ts'
import { Calls } from '../calls.ts'
import type { FromThread, ToThread } from '../messages.ts'
import type { FromStreams } from '../streams.ts'
import { ThreadStreams } from '../thread/streams.ts'
import type { GatewayCalls, MainCalls } from '../thread-calls.ts'
import { askThreads, type ThreadAnswer } from './ask-threads.ts'
import { StandingMessages, ThreadSubscriptions } from './subscriptions.ts'
import { WorkerSlot } from './worker-slot.ts'

interface FakeThread {
  readonly slot: WorkerSlot
  /** What the pool does with a new thread. */
  start(): void
  crash(): void
  /** It was told to end. */
  end(): void
  /** While true, messages to and from the thread are held back. */
  stuck: boolean
  emit: Emit<string>
  ended: number
  readonly sent: FromStreams[]
}

const TOLD = new ThreadStream<{ readonly bug: boolean }, string>('told')
const ALL = { bug: false }

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** @param level the thread's answer to `logLevel` */
function setUp(threads: number, level: (thread: number) => LogLevel | Promise<LogLevel> = () => 'info') {
  const logged: string[] = []
  const keep = (message: string): void => void logged.push(message)
  const fakes: FakeThread[] = []
  const slots: WorkerSlot[] = []
  const owner = {
    handlers: { ask: () => assert.fail('no call') },
    onUnclaimed: () => undefined,
    onMessage: (slot: WorkerSlot, message: FromThread) => {
      if (message.type === 'no-stream' || message.type === 'events') subscriptions.receive(slot, message)
      if (message.type === 'online') subscriptions.online(slot)
    },
    onExit: () => undefined,
  }
  for (let index = 0; index < threads; index++) {
    let say: (message: FromThread) => void = () => undefined
    let exit: () => void = () => undefined
    let ids = index * 100
    let current: ThreadStreams | undefined
    const slot = new WorkerSlot(
      index,
      (_, events) => {
        const send = (message: FromThread): void => {
          if (!fake.stuck && current === own) events.onMessage(message)
        }
        const own = new ThreadStreams((message) => {
          fake.sent.push(message)
          send(message)
        })
        own.serve(TOLD, ({ bug }, emit) => {
          if (bug) throw new Error('a bug')
          fake.emit = emit
          return () => void fake.ended++
        })
        const calls = new Calls<GatewayCalls, MainCalls>({
          post: send,
          handlers: {
            logLevel: () => level(index),
            profile: () => '',
            ask: () => assert.fail('no question'),
            shares: () => [],
            report: () => assert.fail('no report'),
            upstreams: () => assert.fail('no upstreams'),
          },
        })
        current = own
        say = (message) => events.onMessage(message)
        exit = () => events.onExit()
        const post = (message: ToThread): void => {
          if (fake.stuck || current !== own) return
          const told = structuredClone(message)
          if (told.type === 'call') calls.receive(told)
          if (told.type === 'subscribe' || told.type === 'credit' || told.type === 'unsubscribe') own.receive(told)
        }
        return { id: ++ids, post, terminate: () => Promise.resolve(), busyMs: () => 0 }
      },
      {} as ConstructorParameters<typeof WorkerSlot>[2],
      owner,
    )
    slots.push(slot)
    const fake: FakeThread = {
      slot,
      start: () => {
        slot.start()
        say({ type: 'online' })
      },
      crash: () => exit(),
      end: () => current?.end(),
      stuck: false,
      emit: () => false,
      ended: 0,
      sent: [],
    }
    fakes.push(fake)
  }
  const log = { debug: keep, info: keep, warn: keep, error: keep }
  const subscriptions: ThreadSubscriptions = new ThreadSubscriptions(slots, log)
  const ask = (options?: AskOptions): Promise<readonly ThreadAnswer<'logLevel'>[]> =>
    askThreads(slots, log, 'logLevel', undefined, options)
  for (const fake of fakes) fake.start()
  const fakeOf = (index: number): FakeThread => {
    const found = fakes[index]
    assert.ok(found)
    return found
  }
  return { subscriptions, ask, fake: fakeOf, logged }
}

describe('calls to all threads', () => {
  it('have an answer of each thread, by its number', async () => {
    const { ask } = setUp(2, (thread) => (thread === 0 ? 'warn' : 'debug'))
    assert.deepEqual(await ask(), [
      { thread: 0, answer: 'warn' },
      { thread: 1, answer: 'debug' },
    ])
  })

  it('leave out threads that are gone, and those that fail, which the log names', async () => {
    const { ask, fake, logged } = setUp(3, (thread) => {
      if (thread === 1) throw new Error('out of luck')
      return 'info'
    })
    fake(0).crash()
    assert.deepEqual(await ask(), [{ thread: 2, answer: 'info' }])
    assert.deepEqual(logged, ['a gateway thread cannot answer'])
  })

  it('do not wait for a thread that dies, no longer than the timeout for one that hangs, and not at all after an abort', async (context) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    context.after(() => mock.timers.reset())
    const { ask, fake } = setUp(2)
    fake(1).stuck = true
    const dying = ask()
    fake(1).crash()
    assert.deepEqual((await dying).length, 1)

    fake(1).start()
    fake(1).stuck = true
    const slow = ask({ timeoutMs: 50 })
    await turn()
    mock.timers.tick(50)
    assert.deepEqual((await slow).length, 1)

    const controller = new AbortController()
    const aborted = ask({ signal: controller.signal })
    await turn()
    controller.abort()
    assert.deepEqual((await aborted).length, 1)
    assert.deepEqual(await ask({ signal: controller.signal }), [])
  })
})

describe('streams', () => {
  it('bring events of all threads, one message a turn, also of a thread that starts later, until they end', async () => {
    const { subscriptions, fake } = setUp(2)
    const taken: unknown[] = []
    const end = subscriptions.subscribe(TOLD, ALL, {
      onEvents: (events, _, thread) => void taken.push([thread, events]),
    })
    fake(0).emit('a')
    fake(0).emit('b')
    fake(1).emit('c')
    await turn()
    assert.deepEqual(taken.splice(0), [
      [0, ['a', 'b']],
      [1, ['c']],
    ])
    fake(1).crash()
    fake(1).start()
    fake(1).emit('d')
    await turn()
    assert.deepEqual(taken.splice(0), [[1, ['d']]])
    end()
    assert.deepEqual([fake(0).ended, fake(1).ended], [1, 1])
    fake(0).emit('e')
    await turn()
    assert.deepEqual(taken, [])
  })

  it('bring what was emitted before the thread ended', async () => {
    const { subscriptions, fake } = setUp(1)
    const taken: unknown[] = []
    subscriptions.subscribe(TOLD, ALL, { onEvents: (events) => void taken.push(...events) })
    fake(0).emit('a')
    fake(0).end()
    assert.deepEqual(taken, ['a'])
    fake(0).emit('b')
    await turn()
    assert.deepEqual([taken, fake(0).ended], [['a'], 1])
  })

  it('never have more under way than their credit: the rest is dropped and counted, and told', async () => {
    const { subscriptions, fake } = setUp(1)
    const room: (() => void)[] = []
    const taken: unknown[] = []
    const onEvents = (events: readonly unknown[], dropped: number): Promise<void> => {
      taken.push([events.length, dropped])
      return new Promise((resolve) => room.push(resolve))
    }
    subscriptions.subscribe(TOLD, ALL, { onEvents, credit: 4 })
    for (let i = 0; i < 1000; i++) fake(0).emit(String(i))
    await turn()
    for (let i = 0; i < 10; i++) fake(0).emit(String(i))
    await turn()
    const sent = fake(0).sent.flatMap((message) => (message.type === 'events' ? message.events : []))
    assert.deepEqual([taken, sent], [[[4, 996]], ['0', '1', '2', '3']])
    room.shift()?.()
    await turn()
    await turn()
    fake(0).emit('new')
    await turn()
    await turn()
    assert.deepEqual(taken.slice(1), [
      [0, 10],
      [1, 0],
    ])
  })

  it('a subscriber that fails has ended; a handler that throws, or is not there, does not end the thread', async () => {
    const { subscriptions, ask, fake, logged } = setUp(1)
    subscriptions.subscribe(TOLD, ALL, { onEvents: () => Promise.reject(new Error('gone')) })
    fake(0).emit('a')
    await turn()
    await turn()
    assert.equal(fake(0).ended, 1)
    subscriptions.subscribe(TOLD, { bug: true }, { onEvents: () => undefined })
    assert.equal(logged.at(-1), 'a gateway thread does not stream')
    subscriptions.subscribe(new ThreadStream('of no subject'), undefined, { onEvents: () => assert.fail('an event') })
    assert.equal(logged.filter((line) => line === 'a gateway thread does not stream').length, 2)
    assert.equal((await ask()).length, 1)
  })
})

const handlers = { ask: () => assert.fail('no call') }
const NO_OWNER = { handlers, onUnclaimed: () => undefined, onMessage: () => undefined, onExit: () => undefined }
const MEMORY = new Int32Array(new SharedArrayBuffer(4))

/** A slot whose thread records what it is sent. */
class ListeningSlot extends WorkerSlot {
  readonly heard: ToThread[] = []

  constructor(index: number, state: WorkerSlot['state']) {
    super(index, () => assert.fail('no thread is to start'), Object({ connectionPlaces: MEMORY }), NO_OWNER)
    this.state = state
  }

  override post(message: ToThread): void {
    this.heard.push(message)
  }
}

const fault = (cluster: string, text: string): ToThread => ({ type: 'credential-fault', cluster, fault: text })

it('a thread that comes online later is told the latest of each kind, and nothing that was withdrawn', () => {
  const running = new ListeningSlot(0, 'listening')
  const later = new ListeningSlot(1, 'starting')
  const standing = new StandingMessages([running, later])
  standing.send({ type: 'own-listeners', addresses: [] })
  standing.send(fault('a', 'first'), 'a')
  standing.send(fault('b', 'other'), 'b')
  standing.send(fault('a', 'second'), 'a')
  standing.withdraw(fault('b', ''), 'b')
  standing.sendOnce({ type: 'abort' })
  assert.deepEqual(later.heard, [])
  assert.deepEqual(
    running.heard.map((message) => ('fault' in message ? message.fault : message.type)),
    ['own-listeners', 'first', 'other', 'second', '', 'abort'],
  )
  standing.welcome(later)
  assert.deepEqual(later.heard, [{ type: 'own-listeners', addresses: [] }, fault('a', 'second')])
})

it('what one thread has said itself is not told to it', () => {
  const [from, other] = [new ListeningSlot(0, 'online'), new ListeningSlot(1, 'online')]
  new StandingMessages([from, other]).sendOnce({ type: 'list-sizes', cluster: 'a', sizes: [] }, from)
  assert.deepEqual([from.heard.length, other.heard.length], [0, 1])
})
