// Attacks on HTTP/2 itself: the hostile connection ends or is held back, with the code that RFC 9113 has for it and a counter
// that says so; another connection works meanwhile; upstream sees a bounded part of it.

import assert from 'node:assert/strict'
import type { ClientHttp2Session } from 'node:http2'
import { after, before, beforeEach, describe, test } from 'node:test'
import { RESETS } from '../../src/http2/budget.ts'
import type { AbuseKind } from '../../src/http2/counters.ts'
import { SERVER_LIMITS } from '../../src/http2/limits.ts'
import { createCA, type KeyPair } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { openRaw } from '../harness/clients/raw-clients.ts'
import { connectFrames, type FrameConnection } from '../harness/frames/frame-connection.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { standsStill, waitFor } from '../harness/wait.ts'

const HOST = 'prod.example.com'
const MAX_HEADER_BYTES = 64 * 1024
/** More than any honest client sends of what is flooded here. */
const FLOOD = 200_000
/** Requests of one hostile connection that upstream may see: a burst of resets, the streams that were open, and those of each second. */
function bounded(sinceMs: number): number {
  const seconds = Math.ceil((performance.now() - sinceMs) / 1000)
  return RESETS.burst + SERVER_LIMITS.maxConcurrentStreams + RESETS.perSecond * seconds
}
const { FLOW_CONTROL_ERROR, PROTOCOL_ERROR, STREAM_CLOSED, ENHANCE_YOUR_CALM, FRAME_SIZE_ERROR } = h2

const clientCA: KeyPair = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice')
let stub: StubUpstream
let gateway: InProcessGateway
/** For clients that are too slow. */
let impatient: InProcessGateway
let neighbour: ClientHttp2Session

before(async () => {
  stub = await startStub()
  const start = (headerTimeoutMs: number): Promise<InProcessGateway> =>
    startInProcess([clusterObject([stub], { clientCA })], { headerTimeoutMs, maxHeaderBytes: MAX_HEADER_BYTES })
  // However busy the machine is.
  gateway = await start(60_000)
  impatient = await start(1_000)
  neighbour = h2Connect({ port: gateway.port, serverName: HOST, certificate: alice })
})
after(async () => {
  neighbour.destroy()
  await gateway.stop()
  await impatient.stop()
  await stub.stop()
})
beforeEach(() => {
  stub.seen.length = 0
  stub.answer = (request) => reply(request, 200, '{"kind":"Stub"}')
})

let attackers = 0

/** A client that has opened no stream yet, of a user who has no other connection. */
function open(
  settings: readonly (readonly [number, number])[] = [],
  { port }: InProcessGateway = gateway,
): Promise<FrameConnection> {
  const cert = clientPair(clientCA, `attacker-${++attackers}`)
  return connectFrames({ port, serverName: HOST, cert, settings })
}

function head(method: string, ...fields: string[]): Buffer {
  const path = '/api/v1/pods'
  return h2.headerBlock([':method', method, ':path', path, ':scheme', 'https', ':authority', HOST, ...fields])
}

const GET = head('GET')
const POST = head('POST')

/** Total of a counter, over all threads. */
async function counted(kind: AbuseKind, of: InProcessGateway = gateway): Promise<number> {
  const pattern = /^portcullis_http2_abuse_total\{([^}]*)\} (\d+)/gm
  let total = 0
  for (const [, labels = '', value] of (await of.metrics()).matchAll(pattern)) {
    const [, found = ''] = /kind="([^"]*)"/.exec(labels) ?? []
    if (found.replaceAll('-', '') === kind.toLowerCase()) total += Number(value)
  }
  return total
}

/**
 * Sends what `piece` gives for 0, 1, 2 ... until the connection is closed, and resolves with the code of its GOAWAY.
 * Fails when the gateway lets all of it happen.
 */
async function flood(client: FrameConnection, piece: (n: number) => Buffer): Promise<number | undefined> {
  for (let n = 0; n < FLOOD && !client.isClosed && client.goawayCode === undefined; ) {
    const batch: Buffer[] = []
    for (const end = n + 100; n < end; n++) batch.push(piece(n))
    client.send(...batch)
    await waitFor(
      'the flood to be taken or cut off',
      () => client.isClosed || client.socket.writableLength < 1_000_000,
      { intervalMs: 2 },
    )
    await new Promise(setImmediate)
  }
  await waitFor('the connection to be closed', () => client.isClosed, { intervalMs: 10 })
  return client.goawayCode
}

/** Runs the attack on a connection of its own, while a neighbour goes on; `kind` must count it. */
async function attack(kind: AbuseKind, code: number, run: (client: FrameConnection) => Promise<number | undefined>) {
  const counter = await counted(kind)
  const client = await open()
  try {
    const running = run(client)
    const meanwhile = await h2Request(neighbour, [])
    assert.equal(meanwhile.status, 200, 'a neighbour is served during the attack')
    const got = await running
    // A reset of the TCP connection may overtake GOAWAY: then the counter is the only witness.
    if (got !== undefined) assert.equal(got, code)
  } finally {
    client.destroy()
  }
  await waitFor(`${kind} to be counted`, async () => (await counted(kind)) > counter)
  assert.equal((await h2Request(neighbour, [])).status, 200, 'the neighbour is still served')
}

describe('streams opened for nothing', () => {
  test('rapid reset (CVE-2023-44487): ended, and upstream sees a bounded number', async () => {
    const held: SeenRequest[] = []
    stub.answer = (request) => {
      held.push(request)
      if (request.method === 'GET' && request.values('x-neighbour').length === 0) reply(request, 200, '{}')
    }
    const sinceMs = performance.now()
    await attack('rapidReset', ENHANCE_YOUR_CALM, (client) =>
      flood(client, (n) => Buffer.concat([h2.headersFrames(2 * n + 1, GET), h2.rstStream(2 * n + 1, h2.CANCEL)])),
    )
    const told = gateway.logged.find(({ message }) => message.startsWith('HTTP/2 connection ended'))
    assert.deepEqual(told?.fields, { address: '127.0.0.1', kind: 'rapidReset' })
    assert.ok(stub.seen.length <= bounded(sinceMs), `${stub.seen.length} requests at upstream`)
    await waitFor('upstream to be rid of them', () => held.every(({ stream }) => stream.closed || stream.destroyed))
  })

  const provocations: [string, (stream: number) => Buffer, { expectHead: Buffer; flags: number }][] = [
    ['WINDOW_UPDATE of 0', (s) => h2.windowUpdate(s, 0), { expectHead: GET, flags: h2.END_STREAM }],
    ['a window above 2^31-1', (s) => h2.windowUpdate(s, 2 ** 31 - 1), { expectHead: GET, flags: h2.END_STREAM }],
    ['DATA behind END_STREAM', (s) => h2.data(s, 'x'), { expectHead: GET, flags: h2.END_STREAM }],
    ['HEADERS behind END_STREAM', (s) => h2.headersFrames(s, GET), { expectHead: GET, flags: h2.END_STREAM }],
    [
      'PRIORITY of a wrong length',
      (s) => h2.frame(h2.PRIORITY, 0, s, Buffer.alloc(4)),
      { expectHead: GET, flags: h2.END_STREAM },
    ],
    ['PRIORITY on itself', (s) => h2.priority(s, s), { expectHead: GET, flags: h2.END_STREAM }],
    [
      'more DATA than Content-Length',
      (s) => h2.data(s, 'xx'),
      { expectHead: head('POST', 'content-length', '1'), flags: 0 },
    ],
    [
      'trailers with a pseudo-header field',
      (s) => h2.headersFrames(s, h2.headerBlock([':path', '/'])),
      { expectHead: POST, flags: 0 },
    ],
  ]
  const codes = [ENHANCE_YOUR_CALM, PROTOCOL_ERROR, FLOW_CONTROL_ERROR, STREAM_CLOSED, FRAME_SIZE_ERROR]
  for (const [name, provoke, { expectHead, flags }] of provocations) {
    test(`MadeYouReset (CVE-2025-8671) by ${name}: ended, and upstream sees a bounded number`, async () => {
      stub.answer = (request) => {
        if (request.path.includes('neighbour')) reply(request, 200, '{}')
      }
      const counters = async (): Promise<number> =>
        (await counted('madeYouReset')) + (await counted('protocolErrors')) + (await counted('priorityFlood'))
      const before = await counters()
      const sinceMs = performance.now()
      const client = await open()
      const running = flood(client, (n) =>
        Buffer.concat([h2.headersFrames(2 * n + 1, expectHead, flags), provoke(2 * n + 1)]),
      )
      assert.equal((await h2Request(neighbour, [':path', '/api/v1/pods?neighbour'])).status, 200)
      const code = await running
      // A stream error that RFC 9113 lets be a connection error may end it at the first one.
      if (code !== undefined) assert.ok(codes.includes(code), `GOAWAY ${code}`)
      await waitFor('it to be counted', async () => (await counters()) > before)
      assert.ok(stub.seen.length <= bounded(sinceMs), `${stub.seen.length} requests at upstream`)
      await waitFor('upstream to be rid of them', () =>
        stub.seen.every(({ stream }) => stream.closed || stream.destroyed),
      )
    })
  }

  test('more streams than allowed: REFUSED_STREAM for those above, the others are served', async () => {
    const held: SeenRequest[] = []
    stub.answer = (request) => held.push(request)
    const counter = await counted('streamLimit')
    const client = await open()
    const open250 = Array.from({ length: 260 }, (_, i) => h2.headersFrames(2 * i + 1, GET))
    client.send(...open250)
    for (let i = 250; i < 260; i++) assert.equal(await client.reset(2 * i + 1), h2.REFUSED_STREAM)
    await waitFor('250 requests at upstream', () => held.length === 250)
    for (const request of held) reply(request, 200, '{}')
    for (let i = 0; i < 250; i++) assert.equal(await client.status(2 * i + 1), 200)
    stub.answer = (request) => reply(request, 200, '{}')
    client.send(h2.headersFrames(521, GET))
    assert.equal(await client.status(521), 200, 'the connection lives')
    assert.equal(client.goawayCode, undefined)
    await waitFor('it to be counted', async () => (await counted('streamLimit')) >= counter + 10)
    client.destroy()
  })

  test('streams above the limit without end: ended', async () => {
    stub.answer = (request) => {
      if (request.path.includes('neighbour')) reply(request, 200, '{}')
    }
    const client = await open()
    const running = flood(client, (n) => h2.headersFrames(2 * n + 1, GET))
    assert.equal((await h2Request(neighbour, [':path', '/api/v1/pods?neighbour'])).status, 200)
    const code = await running
    if (code !== undefined) assert.equal(code, ENHANCE_YOUR_CALM)
    assert.ok(stub.seen.length <= 251, `${stub.seen.length} requests at upstream`)
  })
})

describe('frames in masses', () => {
  const opaque = Buffer.alloc(8)
  const floods: [string, AbuseKind, number, (client: FrameConnection) => (n: number) => Buffer][] = [
    ['SETTINGS', 'settingsFlood', ENHANCE_YOUR_CALM, () => () => h2.settings()],
    [
      'SETTINGS that change the window',
      'settingsFlood',
      ENHANCE_YOUR_CALM,
      () => (n) => h2.settings([h2.INITIAL_WINDOW_SIZE, n % 65_536]),
    ],
    ['PING', 'pingFlood', ENHANCE_YOUR_CALM, () => (n) => h2.ping(n)],
    ['PING acknowledgements', 'pingFlood', ENHANCE_YOUR_CALM, () => () => h2.frame(h2.PING, h2.ACK, 0, opaque)],
    ['PRIORITY', 'priorityFlood', ENHANCE_YOUR_CALM, () => () => h2.priority(1)],
    ['frames of unknown types', 'unknownFrames', ENHANCE_YOUR_CALM, () => () => h2.frame(0x42, 0, 0, opaque)],
    ['WINDOW_UPDATEs of 1', 'windowUpdateFlood', ENHANCE_YOUR_CALM, () => () => h2.windowUpdate(0, 1)],
    [
      'empty DATA',
      'emptyFrames',
      ENHANCE_YOUR_CALM,
      (client) => {
        client.send(h2.headersFrames(1, POST, 0))
        return () => h2.data(1, '')
      },
    ],
    [
      'DATA that is nothing but padding',
      'emptyFrames',
      ENHANCE_YOUR_CALM,
      (client) => {
        client.send(h2.headersFrames(1, POST, 0))
        return () => h2.frame(h2.DATA, h2.PADDED, 1, Buffer.from([0]))
      },
    ],
    [
      'empty CONTINUATIONs',
      'continuationFlood',
      ENHANCE_YOUR_CALM,
      (client) => {
        client.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, GET))
        return () => h2.frame(h2.CONTINUATION, 0, 1)
      },
    ],
    [
      'CONTINUATIONs without end (CVE-2024-27316)',
      'continuationFlood',
      ENHANCE_YOUR_CALM,
      (client) => {
        client.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, GET))
        const piece = h2.frame(h2.CONTINUATION, 0, 1, h2.headerBlock(['x-a', 'y'.repeat(1_000)]))
        return () => piece
      },
    ],
  ]
  for (const [name, kind, code, begin] of floods)
    test(`${name}: ended with ENHANCE_YOUR_CALM`, () => attack(kind, code, (client) => flood(client, begin(client))))

  test('unsolicited SETTINGS acknowledgements: ended', async () => {
    const client = await open()
    const code = await flood(client, () => h2.frame(h2.SETTINGS, h2.ACK, 0))
    if (code !== undefined) assert.ok([ENHANCE_YOUR_CALM, PROTOCOL_ERROR].includes(code), `GOAWAY ${code}`)
    assert.equal((await h2Request(neighbour, [])).status, 200)
  })

  for (const [name, piece] of [
    ['PING', h2.ping(1)],
    ['SETTINGS', h2.settings()],
    ['requests', undefined],
  ] as const) {
    test(`a client that floods ${name} and reads no answers: ended`, async () => {
      const client = await open()
      client.socket.pause()
      for (let n = 0; n < FLOOD && client.socket.writableLength < 1_000_000; n++) {
        client.send(piece ?? h2.headersFrames(2 * n + 1, head('GET', 'impersonate-uid', 'x')))
        if (n % 1_000 === 0) await new Promise(setImmediate)
      }
      assert.equal((await h2Request(neighbour, [])).status, 200)
      // A client that does not read does not see the end either.
      client.socket.resume()
      await waitFor('the connection to be closed', () => client.isClosed)
    })
  }

  test('WINDOW_UPDATE of 0 on the connection: PROTOCOL_ERROR', async () => {
    await attack('protocolErrors', PROTOCOL_ERROR, (client) => flood(client, () => h2.windowUpdate(0, 0)))
  })

  test('a connection window above 2^31-1: FLOW_CONTROL_ERROR', async () => {
    await attack('protocolErrors', FLOW_CONTROL_ERROR, (client) => flood(client, () => h2.windowUpdate(0, 2 ** 31 - 1)))
  })

  test('more DATA than the window allows: FLOW_CONTROL_ERROR on the stream or the connection', async () => {
    stub.answer = (request) => {
      if (request.method === 'GET') reply(request, 200, '{}')
    }
    const client = await open()
    client.send(h2.headersFrames(1, POST, 0))
    const chunk = h2.data(1, Buffer.alloc(16_384))
    await waitFor('the end of stream or connection', () => {
      if (client.goawayCode !== undefined || client.resets().length > 0) return true
      for (let i = 0; i < 16; i++) client.send(chunk)
      return false
    })
    if (client.goawayCode === undefined) assert.equal(await client.reset(1), FLOW_CONTROL_ERROR)
    else assert.equal(client.goawayCode, FLOW_CONTROL_ERROR)
    client.destroy()
    assert.equal((await h2Request(neighbour, [])).status, 200)
  })
})

describe('a connection that was ended', () => {
  test('is read no further than it takes to see our last frames: who goes on sending is held back by TCP', async () => {
    const client = await open()
    const batch = Buffer.concat(new Array<Buffer>(4_000).fill(h2.ping(1)))
    let taken = 0
    // It reads nothing, GOAWAY and the end included.
    client.socket.pause()
    const pump = (): void => {
      client.socket.write(batch, (error) => {
        if (error) return
        taken += batch.length
        pump()
      })
    }
    pump()
    await waitFor('the connection to be closed', () => client.isClosed, { intervalMs: 10 })
    // What waits in the system's buffers, on both sides, and what the gateway reads before it stops.
    assert.ok(taken < 20_000_000, `${taken} bytes were taken`)
    assert.equal((await h2Request(neighbour, [])).status, 200)
  })
})

describe('heads', () => {
  /** Too large a head on stream 1, then a good one on stream 3. */
  async function refuseHead(block: Buffer): Promise<FrameConnection> {
    const client = await open()
    client.send(h2.headersFrames(1, block))
    assert.equal(await client.status(1), 431)
    client.send(h2.headersFrames(3, GET))
    assert.equal(await client.status(3), 200, 'the connection lives')
    assert.equal(client.goawayCode, undefined)
    assert.equal(stub.seen.length, 1)
    return client
  }

  test('a list above the limit: 431 on that stream only', async () => {
    const counter = await counted('headerListTooLarge')
    const fields = Array.from({ length: 20 }, (_, i) => [`x-${i}`, 'y'.repeat(4_000)])
    const client = await refuseHead(head('GET', ...fields.flat()))
    client.destroy()
    await waitFor('it to be counted', async () => (await counted('headerListTooLarge')) > counter)
  })

  test('one field above the limit: 431 on that stream only', async () => {
    const client = await refuseHead(head('GET', 'x-big', 'y'.repeat(MAX_HEADER_BYTES)))
    client.destroy()
  })

  test('too many short fields: 431 on that stream only', async () => {
    const client = await refuseHead(head('GET', ...new Array<string[]>(3_000).fill(['x-a', '']).flat()))
    client.destroy()
  })

  test('a head just below the limit passes whole', async () => {
    const client = await open()
    client.send(h2.headersFrames(1, head('GET', 'x-big', 'y'.repeat(MAX_HEADER_BYTES - 1_000))))
    assert.equal(await client.status(1), 200)
    assert.equal(stub.seen[0]?.values('x-big')[0]?.length, MAX_HEADER_BYTES - 1_000)
    client.destroy()
  })

  test('what was refused still feeds the table: fields that it indexed are known to the next head', async () => {
    const client = await open()
    const indexed = Buffer.concat([Buffer.from([0x40]), h2.headerBlock(['x-known', 'yes']).subarray(1)])
    const big = h2.headerBlock(['x-big', 'y'.repeat(MAX_HEADER_BYTES)])
    client.send(h2.headersFrames(1, Buffer.concat([GET, big, indexed])))
    assert.equal(await client.status(1), 431)
    client.send(h2.headersFrames(3, Buffer.concat([GET, Buffer.from([0x80 | 62])])))
    assert.equal(await client.status(3), 200)
    assert.deepEqual(stub.seen[0]?.values('x-known'), ['yes'])
    client.destroy()
  })

  test('an HPACK bomb: refused or ended, in bounded memory', async () => {
    const counter = (await counted('hpackBomb')) + (await counted('headerListTooLarge'))
    const client = await open()
    const seed = Buffer.concat([Buffer.from([0x40]), h2.headerBlock(['x-bomb', 'y'.repeat(4_000)]).subarray(1)])
    const heapBefore = process.memoryUsage().rss
    for (let i = 0; i < 20; i++) {
      // 60,000 references of one byte: 240 MB of fields.
      client.send(h2.headersFrames(2 * i + 1, Buffer.concat([GET, seed, Buffer.alloc(60_000, 0x80 | 62)])))
    }
    await waitFor(
      'refusals or the end',
      () => client.isClosed || client.frames.filter(({ type }) => type === h2.HEADERS).length === 20,
    )
    assert.equal(stub.seen.length, 0)
    if (client.goawayCode !== undefined) assert.equal(client.goawayCode, ENHANCE_YOUR_CALM)
    else assert.equal(await client.status(1), 431)
    const grown = process.memoryUsage().rss - heapBefore
    assert.ok(grown < 200_000_000, `${grown} bytes more`)
    client.destroy()
    await waitFor('it to be counted', async () => {
      return (await counted('hpackBomb')) + (await counted('headerListTooLarge')) > counter
    })
    assert.equal((await h2Request(neighbour, [])).status, 200)
  })

  test('a head that begins and does not end: the connection ends', async () => {
    const counter = await counted('slowPreface', impatient)
    const client = await open([], impatient)
    await client.frame('SETTINGS', ({ type }) => type === h2.SETTINGS)
    client.answers = false
    client.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, GET))
    await waitFor('the connection to be closed', () => client.isClosed)
    await waitFor('it to be counted', async () => (await counted('slowPreface', impatient)) > counter)
    assert.equal(stub.seen.length, 0)
  })

  test('a table size above what was allowed: COMPRESSION_ERROR', async () => {
    const block = Buffer.concat([Buffer.from([0x3f, 0xe1, 0xff, 0x03]), GET])
    await attack('protocolErrors', h2.COMPRESSION_ERROR, (client) =>
      flood(client, (n) => h2.headersFrames(2 * n + 1, block)),
    )
  })
})

describe('too slow', () => {
  /** Answers with bodies without end; `written` says how much of them was taken. */
  function endless(): { written: number } {
    const count = { written: 0 }
    const chunk = Buffer.alloc(64 * 1024)
    stub.answer = ({ stream, path }) => {
      if (path.includes('neighbour')) {
        stream.respond([':status', '200'])
        stream.end('{}')
        return
      }
      stream.respond([':status', '200'])
      const pump = (): void => {
        do count.written += chunk.length
        while (!stream.destroyed && count.written < 2_000_000_000 && stream.write(chunk))
      }
      stream.on('drain', pump)
      pump()
    }
    return count
  }

  /** Resolves with the number of bytes that upstream got rid of when it does not grow any more. */
  function settled(count: { written: number }): Promise<number> {
    return standsStill('what upstream writes', () => count.written)
  }

  const LARGEST = 2 ** 31 - 1
  test('windows of 0 on 250 streams: upstream is held back', async () => {
    const count = endless()
    const client = await open([[h2.INITIAL_WINDOW_SIZE, 0]])
    client.send(...Array.from({ length: 250 }, (_, i) => h2.headersFrames(2 * i + 1, GET)))
    assert.equal((await h2Request(neighbour, [':path', '/api/v1/pods?neighbour'])).status, 200)
    const taken = await settled(count)
    // For each stream: what upstream may send ahead on it, what is queued above the high-water mark, and the stub's own buffer.
    assert.ok(taken < 250 * 1_600_000, `${taken} bytes were taken for a client that reads none`)
    assert.equal(client.dataBytes.get(0), undefined)
    client.destroy()
    await waitFor('upstream to be rid of them', () =>
      stub.seen.every(({ stream }) => stream.closed || stream.destroyed),
    )
  })

  test('a client with huge windows that does not read: upstream is held back', async () => {
    const count = endless()
    const client = await open([[h2.INITIAL_WINDOW_SIZE, LARGEST]])
    client.send(h2.windowUpdate(0, LARGEST - 65_535))
    client.socket.pause()
    client.send(...Array.from({ length: 100 }, (_, i) => h2.headersFrames(2 * i + 1, GET)))
    assert.equal((await h2Request(neighbour, [':path', '/api/v1/pods?neighbour'])).status, 200)
    const taken = await settled(count)
    assert.ok(taken < 100 * 1_600_000 + 16_000_000, `${taken} bytes were taken for a client that reads none`)
    client.destroy()
    await waitFor('upstream to be rid of them', () =>
      stub.seen.every(({ stream }) => stream.closed || stream.destroyed),
    )
  })

  test('a window opened byte by byte: held back, and the neighbour is served', async () => {
    endless()
    const client = await open([[h2.INITIAL_WINDOW_SIZE, 0]])
    client.send(h2.headersFrames(1, GET))
    assert.equal(await client.status(1), 200)
    for (let i = 1; i <= 200; i++) {
      client.send(h2.windowUpdate(1, 1))
      await waitFor('one more byte', () => client.dataBytes.get(1) === i, { intervalMs: 1 })
    }
    assert.equal((await h2Request(neighbour, [':path', '/api/v1/pods?neighbour'])).status, 200)
    client.destroy()
  })

  test('no preface, or one that comes a byte at a time: ended and counted', async () => {
    const counter = await counted('slowPreface', impatient)
    const { port } = impatient
    const silent = await openRaw({ port, serverName: HOST, cert: alice, alpn: ['h2'] })
    const slow = await openRaw({ port, serverName: HOST, cert: alice, alpn: ['h2'] })
    const preface = [...h2.PREFACE]
    const drip = setInterval(() => slow.send(preface.shift() ?? ''), 300)
    await Promise.all([silent.closed, slow.closed]).finally(() => clearInterval(drip))
    await waitFor('both to be counted', async () => (await counted('slowPreface', impatient)) >= counter + 2)
  })

  test('a preface without SETTINGS: ended', async () => {
    const client = await openRaw({ port: impatient.port, serverName: HOST, cert: alice, alpn: ['h2'] })
    client.send(h2.PREFACE)
    await client.closed
  })

  test('another preface than that of HTTP/2: PROTOCOL_ERROR', async () => {
    const client = await openRaw({ port: gateway.port, serverName: HOST, cert: alice, alpn: ['h2'] })
    client.send('GET /api/v1/pods HTTP/1.1\r\nHost: prod.example.com\r\n\r\n')
    await client.closed
    assert.equal(stub.seen.length, 0)
  })
})
