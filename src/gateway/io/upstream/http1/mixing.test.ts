// Whatever clients and an endpoint over HTTP/1.1 do, in any order: no request gets anything of another one's answer, and the endpoint reads whole
// requests only.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Asked, type EndpointSocket, Http1Endpoint } from '../../../../../test/harness/frames/http1-endpoint.ts'
import { turns } from '../../../../../test/harness/turns.ts'
import { ANSWER_WATER_BYTES } from '../../../../kit/api/stream.ts'

const WRONG = 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong'
const BODY_BYTES = 50_000
/** More than an answer has without being taken. */
const LONG = 3 * ANSWER_WATER_BYTES

interface Seen {
  readonly path: string
  readonly isHead: boolean
  readonly isWhole: boolean
}

/** The requests on a connection, as a strict server reads them. */
function requestsIn(text: string): Seen[] {
  const seen: Seen[] = []
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf('\r\n\r\n', at)
    // Heads are one write.
    assert.ok(end > 0, 'a part of a head')
    const head = text.slice(at, end)
    const [, method, path] = /^(GET|HEAD|POST) (\/\d+) HTTP\/1\.1\r\nhost: a\r\n/.exec(head) ?? []
    assert.ok(method !== undefined && path !== undefined, `no request: ${head.slice(0, 100)}`)
    const length = /content-length: (\d+)/.exec(head)?.[1]
    const after = head.includes('chunked') ? chunksEnd(text, end + 4) : end + 4 + Number(length ?? 0)
    const isWhole = after >= 0 && after <= text.length
    seen.push({ path, isHead: method === 'HEAD', isWhole })
    at = isWhole ? after : text.length
  }
  return seen
}

/** -1 = there is no end. */
function chunksEnd(text: string, from: number): number {
  for (let at = from; ; ) {
    const line = text.indexOf('\r\n', at)
    if (line < 0) return -1
    const size = text.slice(at, line)
    assert.match(size, /^[0-9a-f]+$/)
    const bytes = Number.parseInt(size, 16)
    at = line + 2 + bytes + 2
    if (at > text.length) return -1
    assert.equal(text.slice(at - 2, at), '\r\n')
    if (bytes === 0) return at
  }
}

const ANSWERS: readonly ((path: string) => string)[] = [
  (path) => `HTTP/1.1 200 OK\r\ncontent-length: ${LONG}\r\n\r\n${path.padEnd(LONG)}`,
  (path) =>
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${LONG.toString(16)}\r\n${path.padEnd(LONG)}\r\n0\r\n\r\n${WRONG}`,
  (path) => `HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}`,
  (path) => `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${path.length.toString(16)}\r\n${path}\r\n0\r\n\r\n`,
  (path) =>
    `HTTP/1.1 103 a\r\n\r\nHTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${path.length}\r\n\r\n${path}`,
  (path) => `HTTP/1.1 200 OK\r\ncontent-length: ${path.length}\r\n\r\n${path}${WRONG}`,
  (path) => `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: ${path.length}\r\n\r\n${path}`,
  (path) =>
    `HTTP/1.1 200 OK\r\nkeep-alive: timeout=5\r\ntransfer-encoding: chunked\r\n\r\n1\r\n${path[0]}\r\n${(path.length - 1).toString(16)}\r\n${path.slice(1)}\r\n0\r\na: b\r\n\r\n`,
]

class World {
  readonly endpoint = new Http1Endpoint()
  readonly #asked = new Map<string, { readonly asked: Asked; left: number }>()
  /** Answers sent on each connection, and what is still to be sent of the last one. */
  readonly #answers = new Map<EndpointSocket, { count: number; rest: string }>()
  answered = 0

  ask(method: string, pieces: number, hasLength: boolean): void {
    const path = `/${this.#asked.size}`
    const fields = hasLength ? ['content-length', String(pieces * BODY_BYTES)] : []
    const isBodied = method === 'POST' && pieces > 0
    const asked = this.endpoint.open([':method', method, ':path', path, ...(isBodied ? fields : [])], !isBodied)
    this.#asked.set(path, { asked, left: isBodied ? pieces : 0 })
  }

  body(which: number): void {
    const open = [...this.#asked.values()].filter(({ left }) => left > 0)
    const one = open[which % open.length]
    if (one === undefined) return
    one.left--
    // It looks like a request, for a server that reads it as one.
    one.asked.stream.body(Buffer.from('GET /wrong HTTP/1.1\r\nhost: a\r\n\r\n'.padEnd(BODY_BYTES, 'x')), one.left === 0)
  }

  /** Its client takes what it has. */
  credit(which: number): void {
    const all = [...this.#asked.values()]
    const asked = all[which % all.length]?.asked
    asked?.stream.credit(asked.body.length)
  }

  reset(which: number): void {
    const all = [...this.#asked.values()]
    all[which % all.length]?.asked.stream.reset('cancel')
  }

  #socket(which: number): EndpointSocket | undefined {
    const open = this.endpoint.sockets.filter((socket) => !socket.destroyed && !socket.readableEnded)
    return open[which % open.length]
  }

  answer(which: number, kind: number, part: number): void {
    const socket = this.#socket(which)
    if (socket === undefined) return
    const state = this.#answers.get(socket) ?? { count: 0, rest: '' }
    this.#answers.set(socket, state)
    if (state.rest === '') {
      const request = requestsIn(socket.text)[state.count]
      if (request === undefined) return
      state.count++
      this.answered++
      const whole = (ANSWERS[kind % ANSWERS.length] as (path: string) => string)(request.path)
      state.rest = request.isHead
        ? whole.slice(0, whole.lastIndexOf('\r\n\r\n', whole.indexOf(request.path)) + 4)
        : whole
    }
    const size = Math.ceil((state.rest.length * (part + 1)) / 4)
    socket.push(Buffer.from(state.rest.slice(0, size), 'latin1'))
    state.rest = state.rest.slice(size)
  }

  surplus(which: number): void {
    const socket = this.#socket(which)
    if (socket === undefined) return
    const { count, rest } = this.#answers.get(socket) ?? { count: 0, rest: '' }
    // Otherwise it is the answer, or a part of it.
    if (rest === '' && requestsIn(socket.text).length === count) socket.push(Buffer.from(WRONG))
  }

  close(which: number, isAtOnce: boolean): void {
    const socket = this.#socket(which)
    if (isAtOnce) socket?.destroy(new Error('reset'))
    else if (socket !== undefined && !socket.readableEnded) socket.push(null)
  }

  block(which: number, isBlocked: boolean): void {
    const socket = this.#socket(which)
    if (socket === undefined) return
    if (isBlocked) socket.isBlocked = true
    else socket.unblock()
  }

  check(): void {
    for (const { text } of this.endpoint.sockets) {
      const all = requestsIn(text)
      for (const [i, { isWhole }] of all.entries()) assert.ok(isWhole || i === all.length - 1)
    }
    const paths = this.endpoint.sockets.flatMap(({ text }) => requestsIn(text).map(({ path }) => path))
    assert.equal(new Set(paths).size, paths.length, 'a request was sent twice')
    for (const [path, { asked }] of this.#asked) {
      const whole = path.padEnd(LONG)
      assert.ok(whole.startsWith(asked.body), `${path} has got ${asked.body.slice(0, 100)}`)
      assert.ok(!asked.end || ['', path, whole].includes(asked.body), `${path} has got a part`)
      assert.ok(!asked.end || asked.reset === undefined)
    }
  }

  async end(): Promise<void> {
    for (const { asked } of this.#asked.values()) asked.stream.reset('cancel')
    for (const socket of this.endpoint.sockets) socket.unblock()
    await turns()
    this.check()
    assert.equal(this.endpoint.pool.short.streams, 0)
    assert.equal(this.endpoint.heldBytes, 0)
    this.endpoint.pool.destroy()
    await turns()
    for (const socket of this.endpoint.sockets)
      assert.ok(socket.destroyed || socket.writableEnded, 'a connection is left')
  }
}

type Step = (world: World) => unknown
const any = fc.nat(7)

function act<T>(weight: number, choice: fc.Arbitrary<T>, act: (world: World, chosen: T) => unknown) {
  return {
    weight,
    arbitrary: choice.map(
      (chosen): Step =>
        (world) =>
          act(world, chosen),
    ),
  }
}

const step: fc.Arbitrary<Step> = fc.oneof(
  act(4, fc.tuple(fc.constantFrom('GET', 'HEAD', 'POST', 'POST'), fc.nat(4), fc.boolean()), (world, of) =>
    world.ask(...of),
  ),
  act(6, fc.tuple(any, any, fc.constantFrom(0, 1, 3, 3, 3)), (world, of) => world.answer(...of)),
  act(4, any, (world, which) => world.body(which)),
  act(3, any, (world, which) => world.credit(which)),
  act(1, any, (world, which) => world.reset(which)),
  act(1, any, (world, which) => world.surplus(which)),
  act(1, fc.tuple(any, fc.boolean()), (world, of) => world.close(...of)),
  act(2, fc.tuple(any, fc.boolean()), (world, of) => world.block(...of)),
  act(6, fc.constant(0), () => turns()),
)

test('requests, bodies, answers, ends and pauses in any order', async () => {
  let answered = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 100, size: 'max' }), async (steps) => {
      const world = new World()
      for (const each of steps) {
        await each(world)
        world.check()
      }
      await turns()
      await world.end()
      answered += world.answered
    }),
    { numRuns: 200 },
  )
  assert.ok(answered > 300, `${answered}`)
})
