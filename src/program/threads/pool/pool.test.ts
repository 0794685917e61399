// The main thread's management of threads, with fake threads scripted by the test.

import assert from 'node:assert/strict'
import { describe, it, mock, type TestContext } from 'node:test'
import { MessagePort } from 'node:worker_threads'
import { compileCluster } from '../../../gateway/core/cluster/compile-cluster.ts'
import { createMetrics } from '../../../gateway/metrics/metrics.ts'
import { ClusterTable } from '../../../gateway/state/clusters.ts'
import { Question } from '../../../kit/core/topics/questions.ts'
import { Topic } from '../../../kit/core/topics/topics.ts'
import { loadConfig } from '../../../process/config/config.ts'
import { AddressFailures } from '../../../process/failures/address-failures.ts'
import type { Movable, ThreadEvents } from '../../io/threads.ts'
import type { FromThread, ThreadData, ToThread } from '../messages.ts'
import { ThreadOutbox } from '../thread/outbox.ts'
import { ThreadPool } from './pool.ts'

const ADDRESSES = [{ host: '127.0.0.1', port: 0 }]
const PORT = 4711

class FakeThread {
  readonly data: ThreadData
  readonly received: ToThread[] = []
  readonly #events: ThreadEvents<FromThread>
  /** Whether it answers messages. */
  answers = true

  constructor(data: ThreadData, events: ThreadEvents<FromThread>) {
    this.data = data
    this.#events = events
  }

  say(message: FromThread): void {
    this.#events.onMessage(message)
  }

  crash(error?: Error): void {
    if (error !== undefined) this.#events.onError(error)
    this.#events.onExit()
  }

  hear(message: ToThread, moved: readonly Movable[] = []): void {
    this.received.push(Reflect.apply(structuredClone, undefined, [message, { transfer: moved }]))
    // An open port would keep the process alive.
    for (const port of moved) if (port instanceof MessagePort) port.close()
    if (!this.answers) return
    if (message.type === 'commit') this.say({ type: 'applied', generation: message.generation })
    if (message.type === 'listen')
      this.say({ type: 'listening', ports: message.addresses.map(({ port }) => port || PORT) })
    if (message.type === 'drain') this.say({ type: 'drained' })
    if (message.type === 'end') this.say({ type: 'ended' })
    if (message.type === 'call' && message.name === 'report')
      this.say({ type: 'answer', id: message.id, name: 'report', answer: emptyReport() })
  }

  types(): string[] {
    return this.received.map(({ type }) => type)
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function emptyReport() {
  return { running: 3, clients: 0, tokensRemembered: 0 }
}

function setUp(threads = 2) {
  const fakes: FakeThread[] = []
  const logged: { message: string; fields: Record<string, unknown> }[] = []
  const written: string[] = []
  const broken: string[] = []
  const logAs = (message: string, fields: Record<string, unknown> = {}): void => void logged.push({ message, fields })
  const seed = [1, 2] as const
  const clusters = new ClusterTable({ thread: threads, threads, seed })
  const time = { ms: 1_000_000 }
  const failures = new AddressFailures({ free: 1, longestBlockMs: 300_000, nowMs: () => time.ms })
  const writer = {
    write: (line: string): void => void written.push(line),
    dropped: () => 0,
    flush: () => Promise.resolve(),
    close: () => Promise.resolve(),
  }
  const pool = new ThreadPool({
    threads,
    start: (data, events) => {
      const fake = new FakeThread(data, events)
      fakes.push(fake)
      return {
        id: fakes.length,
        post: (message, ports) => fake.hear(message, ports),
        busyMs: () => 0,
        terminate: () => {
          fake.crash()
          return Promise.resolve()
        },
      }
    },
    data: {
      config: loadConfig({ flags: { configDir: 'd' }, env: {}, readFile: () => '' }),
      serving: { cert: '', key: '' },
      accessLog: true,
      auditLog: false,
      auditPolicy: undefined,
    },
    seed,
    clusters,
    metrics: createMetrics(),
    clock: { now: () => 0, monotonic: () => time.ms },
    log: { debug: logAs, info: logAs, warn: logAs, error: logAs },
    access: writer,
    audit: undefined,
    failures,
    onBroken: (cluster, endpoint) => void broken.push(`${cluster} ${endpoint}`),
  })
  const put = (revision: string): void => {
    const spec = { servers: [{ endpoint: 'https://a:1' }], dispatchPolicies: [] }
    const metadata = { name: 'prod' }
    const object = { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', metadata, spec } as const
    clusters.change([compileCluster({ object, revision })], [], time.ms)
  }
  /** The fake that was started as number `n`. */
  const fake = (n: number): FakeThread => {
    const found = fakes[n]
    assert.ok(found, `thread ${n} was not started`)
    return found
  }
  return { pool, clusters, failures, fakes, fake, logged, written, broken, time, put }
}

type Scene = ReturnType<typeof setUp>

async function started(threads = 2): Promise<Scene> {
  const scene = setUp(threads)
  scene.pool.start()
  for (const fake of scene.fakes) fake.say({ type: 'online' })
  await scene.pool.online()
  assert.deepEqual(await scene.pool.listen(ADDRESSES), [PORT])
  return scene
}

/** Runs everything that awaited settled promises. */
function promisesRun(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

function withTimers(context: TestContext): void {
  mock.timers.enable({ apis: ['setTimeout'] })
  context.after(() => mock.timers.reset())
}

describe('start', () => {
  it('the port of the first thread is that of all', async () => {
    const { fake } = await started(3)
    const addresses = [1, 2].map((n) => fake(n).received.findLast(({ type }) => type === 'listen'))
    for (const message of addresses)
      assert.deepEqual(message, { type: 'listen', addresses: [{ host: '127.0.0.1', port: PORT }] })
  })

  it('fails with one line when a thread cannot start', async () => {
    const { pool, fake } = setUp()
    pool.start()
    fake(0).say({ type: 'online' })
    const online = pool.online()
    fake(1).crash(new Error('no such module'))
    await assert.rejects(
      online,
      /^UserError: a gateway thread cannot start: no such module$|cannot start: no such module/,
    )
    await assert.rejects(pool.listen(ADDRESSES))
    await pool.end()
  })

  it('fails with the address that cannot be listened on', async () => {
    const { pool, fake } = setUp(1)
    pool.start()
    fake(0).say({ type: 'online' })
    fake(0).answers = false
    const listening = pool.listen([{ host: '127.0.0.1', port: 80 }])
    fake(0).say({ type: 'failed', address: { host: '127.0.0.1', port: 80 }, message: 'no permission', code: 'EACCES' })
    await assert.rejects(listening, /cannot listen on 127\.0\.0\.1:80: no permission/)
  })
})

describe('a change', () => {
  it('is in force when the last thread has confirmed it, and not before', async () => {
    const { pool, fake, put } = await started()
    fake(1).answers = false
    const inForce: string[] = []
    put('1')
    void pool.publish(['prod'], []).then(() => inForce.push('1'))
    put('2')
    void pool.publish(['prod'], []).then(() => inForce.push('2'))
    await promisesRun()
    assert.deepEqual(inForce, [])
    fake(1).say({ type: 'applied', generation: 1 })
    await promisesRun()
    assert.deepEqual(inForce, ['1'])
    let applied = false
    const waiting = pool.applied().then(() => {
      applied = true
    })
    await promisesRun()
    assert.equal(applied, false)
    fake(1).say({ type: 'applied', generation: 2 })
    await waiting
    assert.deepEqual(inForce, ['1', '2'])
  })

  it('does not wait for a thread that died', async () => {
    const { pool, fake, put } = await started()
    fake(1).answers = false
    const inForce: string[] = []
    put('1')
    void pool.publish(['prod'], []).then(() => inForce.push('1'))
    await promisesRun()
    assert.deepEqual(inForce, [])
    fake(1).crash()
    await promisesRun()
    assert.deepEqual(inForce, ['1'])
  })
})

describe('a thread that dies', () => {
  it('is followed at once by one that gets everything before it listens', async () => {
    const { pool, fake, fakes, logged, put } = await started()
    put('1')
    void pool.publish(['prod'], [])
    const error = new Error('out of luck')
    fake(0).crash(error)
    assert.equal(fakes.length, 3)
    assert.deepEqual(fake(2).data.place.thread, 0)
    fake(2).say({ type: 'online' })
    assert.deepEqual(fake(2).types(), ['clusters', 'commit', 'line', 'listen'])
    assert.equal(pool.slots[0]?.restarts, 1)
    const [told] = logged.filter(({ message }) => message.includes('died'))
    assert.equal(told?.fields['stack'], error.stack)
  })

  it('is followed by one that knows who is blocked, and for how much longer', async () => {
    const { failures, fake, time } = await started(1)
    const told = (n: number): unknown[] =>
      fake(n).received.flatMap((message) => (message.type === 'blocked' ? message.blocks : []))
    await failures.failed('early', 2)
    time.ms += 600
    await failures.failed('late', 2)
    assert.deepEqual(told(0), [
      { source: 'early', forMs: 1_000 },
      { source: 'late', forMs: 1_000 },
    ])
    time.ms += 500
    fake(0).crash()
    fake(1).say({ type: 'online' })
    assert.deepEqual(told(1), [{ source: 'late', forMs: 500 }])
  })

  it('again and again is followed later and later', async (context) => {
    const { fake, fakes, time } = await started(1)
    withTimers(context)
    for (const delayMs of [0, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
      const before = fakes.length
      fake(before - 1).crash()
      if (delayMs > 0) {
        mock.timers.tick(delayMs - 1)
        assert.equal(fakes.length, before)
        mock.timers.tick(1)
      }
      time.ms += delayMs
      assert.equal(fakes.length, before + 1)
      fake(before).say({ type: 'online' })
    }
  })

  it('does not wait after an abort for a thread that hangs: the process must end', async (context) => {
    const { pool, fake } = await started()
    fake(0).answers = false
    withTimers(context)
    const drained = pool.drain()
    // Repeated, as impatient users do.
    for (let i = 0; i < 2; i++) pool.abort()
    assert.deepEqual(fake(0).types().slice(-3), ['drain', 'abort', 'abort'])
    mock.timers.tick(1_000)
    await drained
    const ended = pool.end()
    mock.timers.tick(1_000)
    await ended
  })

  it('while it drains has no successor, and is not waited for', async () => {
    const { pool, fake, fakes } = await started()
    fake(0).answers = false
    const drained = pool.drain()
    fake(0).crash()
    await drained
    assert.equal(fakes.length, 2)
  })
})

describe('reports', () => {
  it('leave out threads that do not answer in time', async (context) => {
    const { pool, fake } = await started()
    withTimers(context)
    fake(0).answers = false
    const asked = pool.reports()
    mock.timers.tick(1_000)
    assert.deepEqual(
      (await asked).map((report) => report?.running),
      [undefined, 3],
    )
    assert.deepEqual(
      pool.slots.map(({ answers }) => answers),
      [false, true],
    )
  })
})

describe('lines', () => {
  it('reach the logs and the probes, one message per turn; what the main thread does not take is dropped and counted', async () => {
    const { fake, written, logged, broken } = await started(1)
    const { linesTaken } = fake(0).data
    const held: FromThread[] = []
    const outbox = new ThreadOutbox((lines) => void held.push({ type: 'lines', lines }), linesTaken, 'info')
    outbox.access('one')
    outbox.access('two')
    outbox.log.debug('not this')
    outbox.log.warn('three', { error: new Error('why'), odd: () => 1 })
    outbox.broke('prod', 'https://a:1')
    outbox.broke('prod', 'https://a:1')
    await new Promise((resolve) => setImmediate(resolve))
    assert.equal(held.length, 1)
    for (const message of held) fake(0).say(message)
    assert.deepEqual(written, ['one', 'two'])
    assert.deepEqual(
      logged.map(({ message }) => message),
      ['three'],
    )
    assert.deepEqual(broken, ['prod https://a:1'])

    const megabyte = 'x'.repeat(1024 * 1024)
    for (let i = 0; i < 9; i++) {
      outbox.access(megabyte)
      outbox.flush()
    }
    assert.equal(outbox.accessDropped, 1)
    for (const message of held.slice(1)) fake(0).say(message)
    outbox.access(megabyte)
    assert.equal(outbox.accessDropped, 1)
  })

  it('with fields that cannot be cloned are still logged', async () => {
    const messages: unknown[] = []
    const taken = new Int32Array(new SharedArrayBuffer(4))
    const outbox = new ThreadOutbox((lines) => void messages.push(structuredClone(lines)), taken, 'info')
    outbox.log.error('odd', { call: () => 1, error: new Error('why') })
    outbox.flush()
    const [{ log }] = messages as [{ log: { message: string; fields: Record<string, unknown> }[] }]
    assert.equal(log[0]?.message, 'odd')
    assert.ok(log[0]?.fields['error'] instanceof Error)
  })
})

describe('what a subject asks and tells', () => {
  const SQUARE = new Question<number, number>('square')
  const OTHER = new Question<string, string>('other')

  /** Answers on command. */
  function answering({ pool }: Scene) {
    const answers: (() => void)[] = []
    const unclaimed: number[] = []
    const later = (n: number): Promise<number> => new Promise((resolve) => answers.push(() => resolve(n * n)))
    pool.questions.answer(SQUARE, later, (n) => unclaimed.push(n))
    return { answers, unclaimed }
  }

  it('all threads are asked, and the answers are those to the question, by thread', async () => {
    const { pool, fake } = await started()
    const asked = pool.ask(SQUARE, 3)
    const calls = [0, 1].map((thread) => fake(thread).received.find(({ type }) => type === 'call'))
    for (const [thread, call] of calls.entries()) {
      assert.ok(call?.type === 'call' && call.name === 'ask')
      assert.deepEqual(call.argument, SQUARE.asked(3))
      const answer = thread === 0 ? OTHER.answered('of another') : SQUARE.answered(9)
      fake(thread).say({ type: 'answer', id: call.id, name: 'ask', answer })
    }
    assert.deepEqual(await asked, [{ thread: 1, answer: 9 }])
  })

  it('a question gets its answer, in the thread that asked', async () => {
    const scene = await started()
    const { fake } = scene
    const { answers } = answering(scene)
    scene.pool.questions.answer(OTHER, (text) => Promise.resolve(`${text}!`))
    fake(1).say({ type: 'call', id: 7, name: 'ask', argument: SQUARE.asked(3) })
    fake(1).say({ type: 'call', id: 8, name: 'ask', argument: OTHER.asked('a') })
    await turn()
    assert.deepEqual(fake(1).received.at(-1), { type: 'answer', id: 8, name: 'ask', answer: OTHER.answered('a!') })
    answers[0]?.()
    await turn()
    assert.deepEqual(fake(1).received.at(-1), { type: 'answer', id: 7, name: 'ask', answer: SQUARE.answered(9) })
    assert.ok(!fake(0).types().includes('answer'))
  })

  it('a question without a handler, and a handler that fails, are failures of that call alone', async () => {
    const { pool, fake } = await started(1)
    fake(0).say({ type: 'call', id: 1, name: 'ask', argument: SQUARE.asked(3) })
    await turn()
    assert.deepEqual(fake(0).received.at(-1), { type: 'failure', id: 1, message: 'no handler answers square' })
    pool.questions.answer(SQUARE, () => Promise.reject(new Error('a bug')))
    fake(0).say({ type: 'call', id: 2, name: 'ask', argument: SQUARE.asked(3) })
    await turn()
    assert.deepEqual(fake(0).received.at(-1), { type: 'failure', id: 2, message: 'a bug' })
  })

  it('the answer for a thread that has died by then goes back to its subject', async () => {
    const scene = await started(1)
    const { fake } = scene
    const { answers, unclaimed } = answering(scene)
    fake(0).say({ type: 'call', id: 1, name: 'ask', argument: SQUARE.asked(3) })
    fake(0).crash()
    fake(1).say({ type: 'online' })
    answers[0]?.()
    await turn()
    assert.ok(!fake(1).types().includes('answer'))
    assert.deepEqual(unclaimed, [9])
  })

  it('a topic reaches all threads, and those that start later; each listener hears what a thread says', async () => {
    const { pool, fake } = await started(2)
    const NAMES = new Topic<ReadonlySet<string> | undefined>('names')
    const told = (n: number): unknown[] =>
      fake(n).received.flatMap((message) => (message.type === 'published' ? [message.payload] : []))
    assert.deepEqual(told(0), [])
    const names = new Set(['a', 'b'])
    pool.topics.publish(NAMES, names)
    assert.deepEqual([told(0), told(1)], [[names], [names]])
    fake(1).crash()
    fake(2).say({ type: 'online' })
    assert.deepEqual(told(2), [names])
    pool.topics.publish(NAMES, undefined)
    assert.deepEqual(told(2), [names, undefined])
    const heard: unknown[] = []
    for (const listener of ['one', 'two']) pool.topics.subscribe(NAMES, (payload) => heard.push([listener, payload]))
    fake(0).say(NAMES.message(names))
    assert.deepEqual(heard, [
      ['one', names],
      ['two', names],
    ])
  })
})
