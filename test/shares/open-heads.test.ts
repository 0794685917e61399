// Heads that begin, are large, and do not end: what is kept of them is taken from the share of their sender, over all connections, and given
// back however they end. Others send theirs meanwhile.

import assert from 'node:assert/strict'
import { after, afterEach, before, describe, test } from 'node:test'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import { FRAME_MEMORY_BYTES, piecesInUse, SLAB_BYTES } from '../../src/http2/slabs.ts'
import type { Charge, HeaderList } from '../../src/kit/api/stream.ts'
import { type Refusal, refuse } from '../../src/kit/core/refusal/refusal.ts'
import { addressCharge, userCharge } from '../../src/kit/core/shares/charge.ts'
import { OpenHeads } from '../../src/kit/core/shares/open-heads.ts'
import { SharedResource } from '../../src/kit/core/shares/shared-resource.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { openRaw, type RawConnection } from '../harness/clients/raw-clients.ts'
import * as h2 from '../harness/frames/h2-frames.ts'
import { errorName, GET, ServerSide } from '../harness/frames/http2-sides.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const KIB = 1024
const MIB = 1024 * KIB
const HOST = 'prod.example.com'
const PATH = '/api/v1/namespaces/default/pods'
const REFUSED = /(?:mallory|127\.0\.0\.1).* buffered bytes|buffered bytes.*(?:mallory|127\.0\.0\.1)/
const COME_BACK = /\(--max-buffered-bytes\); retry in \d s/
const NOTHING = Buffer.alloc(0)
/** A field of 16 KB, with all that HTTP/1.1 and HTTP/2 add. */
const FIELD = h2.headerBlock(['x-a', 'y'.repeat(15_990)])

/** HEADERS and so many CONTINUATIONs of 16 KB, without the end. */
function openBlock(stream: number, head: HeaderList, pieces: number): Buffer {
  const first = h2.frame(h2.HEADERS, h2.END_STREAM, stream, h2.headerBlock(head))
  return Buffer.concat([first, ...Array.from({ length: pieces }, () => h2.frame(h2.CONTINUATION, 0, stream, FIELD))])
}

function endOf(stream: number): Buffer {
  return h2.frame(h2.CONTINUATION, h2.END_HEADERS, stream, NOTHING)
}

describe('over HTTP/2, without sockets', () => {
  const CONNECTIONS = 400
  const who: [name: string, charge: Charge][] = [
    ['a user', userCharge('prod', 'mallory', 1)],
    ['an address', addressCharge('127.0.0.1')],
  ]

  function refused(charge: Charge, limited: boolean[] = []): Refusal {
    limited.push(charge.known)
    return refuse('share-exceeded', 'no room')
  }

  function send(side: ServerSide, bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += 10_000) side.connection.receive(bytes.subarray(at, at + 10_000), 0)
  }

  function pooledBytes(): number {
    const { slabs, frames } = piecesInUse()
    return slabs * SLAB_BYTES + frames * FRAME_MEMORY_BYTES
  }

  for (const [name, charge] of who) {
    test(`${CONNECTIONS} connections of ${name} hold no more memory than the share, and others have theirs`, () => {
      const shared = new SharedResource('buffered-bytes', 8 * MIB)
      const limited: boolean[] = []
      const heads = new OpenHeads({ shared, refuse: (charge) => refused(charge, limited) })
      const shares = shared.of(charge)
      const before = pooledBytes()
      const begun = openBlock(1, GET, 60)
      const sides = Array.from({ length: CONNECTIONS }, () => {
        const side = new ServerSide({}, true, heads.of({ charge }))
        send(side, begun)
        return side
      })
      const ended = sides.filter(({ closed }) => closed !== undefined)
      assert.ok(ended.length > 0 && ended.length < CONNECTIONS, `${ended.length} ended`)
      for (const { closed, counters } of ended) {
        assert.equal(errorName(closed?.code ?? -1), 'ENHANCE_YOUR_CALM')
        assert.equal(counters.openHeads, 1)
      }
      assert.ok(shares.held > 0 && shares.held <= shares.capacity + shares.reserve, `${shares.held}`)
      assert.deepEqual([...new Set(limited)], [charge.known])
      const other = { ...charge, source: 'another user' }
      const side = new ServerSide({}, true, heads.of({ charge: other }))
      send(side, Buffer.concat([openBlock(1, GET, 5), endOf(1)]))
      assert.equal(side.requests.length, 1)
      for (const each of [side, ...sides]) each.take()
      const pooled = pooledBytes() - before
      const spare = heads.spare.of(charge)
      assert.ok(spare.held > 0 && spare.held <= spare.capacity + spare.reserve, `${spare.held}`)
      const counted = shares.held + spare.held
      assert.ok(pooled > 0 && pooled <= counted, `${pooled} bytes of pools, ${counted} counted`)
      for (const { connection } of sides) connection.onSocketClosed()
      assert.equal(shares.held, 0)
      assert.equal(spare.held, 0)
      assert.equal(pooledBytes(), before)
    })
  }

  test('what was taken is given back to the source that paid, although the connection belongs to another user now', () => {
    const shared = new SharedResource('buffered-bytes', MIB)
    const heads = new OpenHeads({ shared, refuse: (charge) => refused(charge) })
    const payer = { charge: addressCharge('127.0.0.1') }
    const side = new ServerSide({}, true, heads.of(payer))
    send(side, openBlock(1, GET, 4))
    const { held } = shared.unknown
    assert.ok(held > 4 * 15_990)
    payer.charge = userCharge('prod', 'alice', 1)
    send(side, Buffer.concat([h2.frame(h2.CONTINUATION, 0, 1, FIELD), h2.frame(h2.CONTINUATION, 0, 1, FIELD)]))
    assert.ok(shared.unknown.held > held)
    assert.equal(shared.known.held, 0)
    send(side, endOf(1))
    assert.equal(side.requests.length, 1)
    assert.equal(shared.unknown.held, 0)
    send(side, openBlock(3, GET, 4))
    assert.ok(shared.known.held > 4 * 15_990, 'the next one')
    side.connection.onSocketClosed()
    assert.equal(shared.known.held, 0)
  })

  test('a frame that has come in part counts, whatever it is; a small head does not', () => {
    const shared = new SharedResource('buffered-bytes', MIB)
    const heads = new OpenHeads({ shared, refuse: (charge) => refused(charge) })
    const side = new ServerSide({}, true, heads.of({ charge: addressCharge('127.0.0.1') }))
    const unknown = h2.frame(99, 0, 0, Buffer.alloc(16 * KIB))
    side.send(unknown.subarray(0, 9))
    assert.equal(shared.unknown.held, FRAME_MEMORY_BYTES)
    side.send(unknown.subarray(9))
    assert.equal(shared.unknown.held, 0)
    side.send(h2.frame(h2.HEADERS, h2.END_STREAM, 1, h2.headerBlock(GET)))
    assert.equal(shared.unknown.held, 0)
    side.send(endOf(1))
    assert.equal(side.requests.length, 1)
  })
})

describe('through a gateway', () => {
  const CAPACITY = 4 * MIB
  const SPARE = 4 * MIB
  const CONNECTIONS = 48
  const clientCA = createCA({ commonName: 'clients of prod' })
  const mallory = clientPair(clientCA, 'mallory')
  const alice = clientPair(clientCA, 'alice')
  let upstream: StubUpstream
  let gateway: InProcessGateway
  before(async () => {
    upstream = await startStub()
    upstream.answer = (request) => reply(request, 200, '{}')
    gateway = await startInProcess([clusterObject([upstream], { clientCA })], { maxBufferedBytes: CAPACITY })
  })
  after(async () => {
    await gateway.stop()
    await upstream.stop()
  })
  const cleanups: (() => void)[] = []
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0)) cleanup()
    await waitFor('nothing to be held', async () => (await heldBytes(true)) === 0 && (await heldBytes(false)) === 0)
  })

  async function heldBytes(known: boolean): Promise<number> {
    const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
    return answer.limits.find((one) => one.limit === 'buffered-bytes' && one.known === known)?.held ?? -1
  }

  async function connect(alpn: string, known: boolean, cert = mallory): Promise<RawConnection> {
    const connection = await openRaw({ port: gateway.port, serverName: HOST, alpn: [alpn], ...(known && { cert }) })
    cleanups.push(connection.destroy)
    return connection
  }

  const head: HeaderList = [':method', 'GET', ':path', PATH, ':scheme', 'https', ':authority', HOST]
  const head1 = `GET ${PATH} HTTP/1.1\r\nHost: ${HOST}\r\n`
  const field1 = `X-A: ${'y'.repeat(15_990)}\r\n`
  const trailers = `POST ${PATH} HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n`

  interface Way {
    readonly name: string
    readonly alpn: string
    /** A whole request, so that it is known who it is, and what its answer looks like. */
    readonly first: Buffer
    readonly answered: RegExp
    readonly begun: Buffer
    readonly refused: readonly RegExp[]
  }
  const ways: readonly Way[] = [
    {
      name: 'a header block over HTTP/2',
      alpn: 'h2',
      first: h2.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS, 1, h2.headerBlock(head)),
      answered: /\{\}/,
      begun: openBlock(3, head, 15),
      refused: [REFUSED, COME_BACK],
    },
    {
      name: 'a head over HTTP/1.1',
      alpn: 'http/1.1',
      first: Buffer.from(`${head1}\r\n`),
      answered: /\{\}/,
      begun: Buffer.from(head1 + field1.repeat(15)),
      refused: [/429 Too Many Requests/, /retry-after: \d/, /"reason":"TooManyRequests"/, REFUSED, COME_BACK],
    },
    {
      name: 'a head that is pipelined behind others',
      alpn: 'http/1.1',
      first: Buffer.from(`${head1}\r\n`),
      answered: /\{\}/,
      begun: Buffer.from(`${head1}\r\n`.repeat(3) + head1 + field1.repeat(15)),
      refused: [],
    },
    {
      name: 'trailers',
      alpn: 'http/1.1',
      first: Buffer.from(`${head1}\r\n`),
      answered: /\{\}/,
      begun: Buffer.from(trailers + field1.repeat(15)),
      refused: [],
    },
  ]
  for (const { name, alpn, first, answered, begun, refused } of ways) {
    for (const known of [true, false]) {
      test(`${name}, of ${known ? 'a user' : 'somebody unknown'}`, async () => {
        const most = (known ? 1 : 1 / 4) * CAPACITY * 1.125
        const connections = await Promise.all(
          Array.from({ length: CONNECTIONS }, async () => {
            const connection = await connect(alpn, known)
            if (alpn === 'h2') connection.send(Buffer.concat([Buffer.from(h2.PREFACE), h2.settings()]))
            if (known) {
              connection.send(first)
              await connection.until(answered)
            }
            connection.send(begun)
            return connection
          }),
        )
        const ended: RawConnection[] = []
        for (const connection of connections) void connection.closed.then(() => ended.push(connection))
        const fit = Math.floor((most + (known ? 1 : 1 / 4) * SPARE * 1.125) / (15 * 16_000))
        await waitFor('connections to end', () => ended.length >= CONNECTIONS - fit)
        for (const connection of ended) {
          for (const pattern of refused) assert.match(connection.received().toString(), pattern)
        }
        const held = await heldBytes(known)
        assert.ok(held <= most, `${held} of ${most}`)
        const { port } = gateway
        const other = h2Connect({ port, serverName: HOST, certificate: alice, localAddress: '127.0.0.3' })
        cleanups.push(() => other.destroy())
        for (let n = 0; n < 3; n++) {
          const large = await h2Request(other, [':method', 'GET', ':path', PATH, 'x-large', 'y'.repeat(30 * KIB)])
          assert.equal(large.status, 200)
        }
        const metrics = await gateway.metrics()
        assert.match(metrics, new RegExp(`portcullis_limited_total\\{limit="buffered-bytes",known="${known}"\\} [1-9]`))
        if (alpn === 'h2')
          assert.match(metrics, /portcullis_http2_abuse_total\{side="client",kind="open-heads"\} [1-9]/)
      })
    }
  }

  test('heads that come to an end are served, and the memory of the parser is not counted twice', async () => {
    for (const alpn of ['h2', 'http/1.1']) {
      const connection = await connect(alpn, true)
      const [begin, end] = alpn === 'h2' ? [openBlock(1, head, 40), endOf(1)] : [head1 + field1.repeat(40), '\r\n']
      // In the part of the unknown it would have no room.
      const first = alpn === 'h2' ? h2.frame(h2.HEADERS, 5, 1, h2.headerBlock(head)) : `${head1}\r\n`
      if (alpn === 'h2') connection.send(Buffer.concat([Buffer.from(h2.PREFACE), h2.settings()]))
      connection.send(first)
      await connection.until(/\{\}/)
      connection.send(alpn === 'h2' ? openBlock(3, head, 40) : begin)
      await waitFor('it is held', async () => (await heldBytes(true)) > 40 * 15_990)
      connection.send(alpn === 'h2' ? endOf(3) : end)
      await connection.until(/\{\}[\s\S]*\{\}/)
      await waitFor('nothing to be held', async () => (await heldBytes(true)) === 0)
    }
  })
})
