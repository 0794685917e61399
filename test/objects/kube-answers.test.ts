// What another machine answers to the gateway's client of objects: whatever it sends, and however, only so much of it is read, held and parsed.

import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { clusterCharge } from '../../src/kit/core/shares/charge.ts'
import { PODS } from '../../src/kube/api/kinds/foreign-kinds.ts'
import { StatusError } from '../../src/kube/api/status.ts'
import { OBJECT, PAGE } from '../../src/kube/core/answers/answer-limits.ts'
import { AnswerTooLargeError, NoRoomError } from '../../src/kube/core/answers/call-errors.ts'
import { threadAnswers } from '../../src/kube/io/answers/thread-answers.ts'
import { clientOf, type KubeClient } from '../../src/kube/io/client.ts'
import { waitFor } from '../harness/wait.ts'

const MIB = 1024 * 1024
/** What two sockets and undici hold of an answer that is not read on. */
const UNDERWAY = 8 * MIB

const quiet = (): void => undefined
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet }

interface Endpoint {
  readonly client: KubeClient
  /** Bytes of answers that have been written. */
  sent(): number
}

async function endpoint(
  t: TestContext,
  listener: RequestListener,
  timeoutMs = 30_000,
  name = 'evil',
): Promise<Endpoint> {
  let before = 0
  const open = new Set<IncomingMessage['socket']>()
  const server = createServer((request, response) => {
    response.on('error', quiet)
    listener(request, response)
  })
  server.on('connection', (socket) => {
    open.add(socket)
    socket.on('close', () => {
      open.delete(socket)
      before += socket.bytesWritten
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const tls = { ca: '', cert: '', key: '', serverName: '', insecure: false }
  const access = { server: url, proxyUrl: '', tls, headers: {} }
  const source = { server: url, charge: clusterCharge(name), access: async () => access, renew: () => false }
  const timing = { firstDelayMs: 5, longestDelayMs: 20 }
  const client = clientOf(source, { log, timeoutMs, timing })
  t.after(async () => {
    await client.close()
    server.closeAllConnections()
    server.close()
  })
  return { client, sent: () => [...open].reduce((sum, { bytesWritten }) => sum + bytesWritten, before) }
}

/** As fast as it is taken, until the connection ends. */
function pour(response: ServerResponse, chunk: Buffer): void {
  const write = (): void => {
    while (!response.destroyed && response.write(chunk)) {
      // Until the socket is full.
    }
  }
  response.on('drain', write)
  write()
}

function heldNow(): number {
  return threadAnswers.known.held + threadAnswers.unknown.held
}

const tooLarge = (message: RegExp) => (error: unknown) =>
  error instanceof AnswerTooLargeError && message.test(error.message)

test('an answer that never ends is given up at its limit, whatever its code', async (t) => {
  for (const code of [200, 403, 500]) {
    const chunk = Buffer.alloc(64 * 1024, '[')
    const { client, sent } = await endpoint(t, (_, response) => {
      response.writeHead(code)
      pour(response, chunk)
    })
    const got = client.get(PODS, { namespace: 'a', name: 'b' })
    if (code === 200) await assert.rejects(got, tooLarge(/more than 10485760 bytes/))
    else await assert.rejects(got, (error) => error instanceof StatusError && error.code === code)
    assert.ok(sent() <= (code === 200 ? OBJECT.bytes : 0) + UNDERWAY, `${code}: ${sent()}`)
    assert.equal(heldNow(), 0)
  }
})

test('nothing is parsed that has more values, different keys, digits or levels than a turn has time for', async (t) => {
  const items = (text: string): string => `{"items":[],"metadata":{},"x":[${text}0]}`
  const keys = Array.from({ length: 100_000 }, (_, i) => `"${i}":1`).join(',')
  for (const [text, excess, isPage = true] of [
    [items('{},'.repeat(150_000)), /more than \d+ values/],
    [items(`{${keys}},`), /more than \d+ different keys/],
    [items(`${'1'.repeat(3 * MIB)},`), /more than \d+ bytes outside of strings/, false],
    [items(`${'['.repeat(100_000)}${']'.repeat(100_000)},`), /more than \d+ levels/],
  ] as const) {
    const { client } = await endpoint(t, (_, response) => response.end(text))
    if (isPage) await assert.rejects(client.list(PODS, ''), tooLarge(excess))
    await assert.rejects(client.get(PODS, { namespace: 'a', name: 'b' }), tooLarge(excess))
  }
})

test('100 MiB of small values are neither read nor parsed', async (t) => {
  const chunk = Buffer.from('{},'.repeat(20_000))
  let asked = 0
  const { client, sent } = await endpoint(t, (_, response) => {
    asked++
    response.write('{"items":[],"metadata":{},"x":[')
    let left = 100 * MIB
    const write = (): void => {
      while (left > 0 && !response.destroyed) {
        left -= chunk.length
        if (!response.write(chunk)) return
      }
      response.end('0]}')
    }
    response.on('drain', write)
    write()
  })
  await assert.rejects(client.list(PODS, ''), AnswerTooLargeError)
  // Half as many each time, from 200 down to 1.
  assert.equal(asked, 8)
  assert.ok(sent() <= 7 * (PAGE.bytes + UNDERWAY) + OBJECT.bytes + UNDERWAY, String(sent()))
})

test('a line of a watch without an end is given up, and listed again', async (t) => {
  const chunk = Buffer.alloc(64 * 1024, 'a')
  let watches = 0
  const { client, sent } = await endpoint(t, (request, response) => {
    if (!String(request.url).includes('watch=1')) {
      response.end('{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}')
      return
    }
    watches++
    response.write('{"type":"ADDED","object":{"x":"')
    if (watches <= 2) pour(response, chunk)
  })
  const following = client.follow(PODS, '', { onReplace: quiet, onChange: quiet, onState: quiet })
  t.after(() => following.stop())
  await waitFor('the third watch', () => watches === 3)
  assert.ok(sent() <= 2 * (OBJECT.bytes + UNDERWAY), String(sent()))
})

test('an event of a watch with too many values is not parsed, and listed instead', async (t) => {
  let lists = 0
  const { client } = await endpoint(t, (request, response) => {
    if (String(request.url).includes('watch=1')) {
      response.end(`{"type":"ADDED","object":{"metadata":{"resourceVersion":"2"},"x":[${'{},'.repeat(500_000)}0]}}\n`)
      return
    }
    lists++
    response.end('{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}')
  })
  const parsed: string[] = []
  const onChange = (type: string): void => void parsed.push(type)
  const following = client.follow(PODS, '', { onReplace: quiet, onChange, onState: quiet })
  t.after(() => following.stop())
  await waitFor('the third list', () => lists >= 3)
  assert.deepEqual(parsed, [])
})

test('slow bytes are waited for as long as a call may take, also those of a refusal', async (t) => {
  for (const code of [200, 500]) {
    const { client } = await endpoint(
      t,
      (_, response) => {
        response.writeHead(code)
        const drip = setInterval(() => response.write(' '), 5)
        response.on('close', () => clearInterval(drip))
      },
      200,
    )
    await assert.rejects(client.get(PODS, { namespace: 'a', name: 'b' }), /no answer/)
    const states: string[] = []
    const onState = (_: boolean, message: string): void => void states.push(message)
    if (code === 500) {
      const following = client.follow(PODS, '', { onReplace: quiet, onChange: quiet, onState })
      await waitFor('a report', () => states.some((message) => /no answer/.test(message)))
      await following.stop()
    }
    assert.equal(heldNow(), 0)
  }
})

test('an answer that is shorter or longer than it says is none', async (t) => {
  const short = await endpoint(t, (_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"kind":"Pod"}', () => response.destroy())
  })
  await assert.rejects(short.client.get(PODS, { namespace: 'a', name: 'b' }), /no answer/)
  const long = await endpoint(t, ({ socket }) => {
    socket.write(
      'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"kind":"Pod"}HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{',
    )
  })
  const pod = await long.client.get(PODS, { namespace: 'a', name: 'b' })
  assert.deepEqual(pod, { kind: 'Pod' })
  assert.equal(heldNow(), 0)
})

test('a compressed answer is refused, before anything of it is unpacked', async (t) => {
  const bomb = gzipSync(Buffer.alloc(32 * MIB, ' '))
  const { client } = await endpoint(t, (request, response) => {
    response.writeHead(request.method === 'DELETE' ? 500 : 200, { 'content-encoding': 'gzip' }).end(bomb)
  })
  await assert.rejects(
    client.get(PODS, { namespace: 'a', name: 'b' }),
    /sent a compressed answer, which was not asked for/,
  )
  await assert.rejects(client.delete(PODS, { namespace: 'a', name: 'b' }), /the server answered 500/)
  const states: string[] = []
  const watched = await endpoint(t, (request, response) => {
    if (String(request.url).includes('watch=1')) response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)
    else response.end('{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}')
  })
  const onState = (_: boolean, message: string): void => void states.push(message)
  const following = watched.client.follow(PODS, '', { onReplace: quiet, onChange: quiet, onState })
  t.after(() => following.stop())
  await waitFor('a report', () => states.some((message) => /compressed answer/.test(message)))
})

function podsOf(count: number, size: number): JsonObject[] {
  return Array.from({ length: count }, (_, i) => ({ metadata: { name: `pod-${i}` }, text: 'x'.repeat(size) }))
}

test('a page that is too large is asked for again with half as many, until it fits', async (t) => {
  const pods = podsOf(700, 15_000)
  const limits: number[] = []
  const { client } = await endpoint(t, (request, response) => {
    const query = new URL(String(request.url), 'http://x').searchParams
    const [from, limit] = [Number(query.get('continue') ?? 0), Number(query.get('limit'))]
    limits.push(limit)
    const next = from + limit < pods.length ? String(from + limit) : ''
    const metadata = { resourceVersion: '7', continue: next }
    response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata, items: pods.slice(from, from + limit) }))
  })
  const { items, resourceVersion } = await client.list(PODS, '')
  assert.deepEqual(
    items.map((pod) => Object(pod['metadata']).name),
    pods.map((pod) => Object(pod['metadata']).name),
  )
  assert.equal(resourceVersion, '7')
  assert.deepEqual(limits, [200, ...Array<number>(7).fill(100)])
})

test('a pod as large as etcd takes it is read, alone and in a list', async (t) => {
  const pod = { metadata: { name: 'large' }, text: '\u0001'.repeat(1.5 * MIB) }
  const { client } = await endpoint(t, (request, response) => {
    const isList = String(request.url).includes('limit=')
    response.end(JSON.stringify(isList ? { kind: 'PodList', metadata: { resourceVersion: '1' }, items: [pod] } : pod))
  })
  assert.deepEqual(await client.get(PODS, { namespace: 'a', name: 'b' }), pod)
  assert.equal((await client.list(PODS, '')).items.length, 1)
})

/** 150 pods with a text of this size. */
function listing(t: TestContext, name: string, size: number, limits: number[]): Promise<Endpoint> {
  const pods = podsOf(150, size)
  const listener: RequestListener = (request, response) => {
    const query = new URL(String(request.url), 'http://x').searchParams
    const [from, limit] = [Number(query.get('continue') ?? 0), Number(query.get('limit'))]
    limits.push(limit)
    const metadata = { resourceVersion: '1', continue: from + limit < pods.length ? String(from + limit) : '' }
    response.end(JSON.stringify({ kind: 'PodList', metadata, items: pods.slice(from, from + limit) }))
  }
  return endpoint(t, listener, 30_000, name)
}

test('answers of all clusters together take what there is for them', async (t) => {
  const { known } = threadAnswers
  const most = known.capacity + known.reserve
  const waiting: ServerResponse[] = []
  const evil = await endpoint(t, (_, response) => {
    waiting.push(response)
    response.write(`{"kind":"Pod","x":"${'x'.repeat(9 * MIB)}`)
  })
  let highest = 0
  // Looked at whenever something is taken: one that is refused gives all back within the same turn.
  const take = threadAnswers.take.bind(threadAnswers)
  t.mock.method(threadAnswers, 'take', (...args: Parameters<typeof take>) => {
    const taken = take(...args)
    highest = Math.max(highest, heldNow())
    return taken
  })
  let refused = 0
  const pods = Array.from({ length: 8 }, () =>
    evil.client.get(PODS, { namespace: 'a', name: 'b' }).then(
      () => 'read',
      (error: unknown) => {
        assert.ok(error instanceof NoRoomError, String(error))
        assert.match(error.message, /the gateway itself, of cluster "evil" has \d+ of \d+ bytes of upstream's answers/)
        refused++
        return 'refused'
      },
    ),
  )
  await waitFor('all to be asked', () => waiting.length === 8)
  // One that is refused gives back at once what it has.
  await waitFor('no room', () => refused > 0 && highest > known.capacity - MIB)
  for (const response of waiting) response.end('"}')
  const ended = await Promise.all(pods)
  assert.ok(ended.includes('read') && ended.includes('refused'), String(ended))
  assert.ok(highest <= most, `${highest} of ${most}`)
  assert.equal(heldNow(), 0)
})

test('while one cluster holds all, another one reads whole pages, and a third one smaller pages', async (t) => {
  const { known } = threadAnswers
  const evil = clusterCharge('evil')
  assert.equal(threadAnswers.take(evil, known.capacity), 'taken')
  t.after(() => threadAnswers.give(evil, known.capacity))
  const limits: number[] = []
  // One page has all 150, and 10 KiB to spare.
  const { client } = await listing(t, 'good', Math.floor((PAGE.bytes - 10 * 1024) / 150) - 50, limits)
  assert.equal((await client.list(PODS, '')).items.length, 150)
  assert.deepEqual(limits, [200])
  const second = clusterCharge('second')
  assert.equal(threadAnswers.take(second, PAGE.bytes), 'taken')
  t.after(() => threadAnswers.give(second, PAGE.bytes))
  assert.equal((await client.list(PODS, '')).items.length, 150)
  assert.deepEqual(limits.slice(1), [200, 100, 100])
  // A source that has its share is not asked again.
  const hog = await listing(t, 'evil', 1000, limits)
  await assert.rejects(hog.client.list(PODS, ''), NoRoomError)
  assert.equal(limits.length, 5)
})
