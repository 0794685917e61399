// Request smuggling over HTTP/1.1: one request of a client is never two at upstream, and a doubtful one ends the connection.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { attackedGateway, ended, HIDDEN, HOST } from '../harness/gateways/attacked-gateway.ts'
import { reply } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const { stub, other, asAlice } = await attackedGateway()

describe('request smuggling on HTTP/1.1', () => {
  const post = (fields: string[], body: string): string => requestHead('POST /api/v1/pods', fields) + body
  const chunkedThenHidden = `0\r\n\r\n${HIDDEN}`
  const hidden = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`

  const malformed: [string, string][] = [
    ['TE and CL', post(['Transfer-Encoding: chunked', 'Content-Length: 6'], chunkedThenHidden)],
    ['CL and TE', post(['Content-Length: 6', 'Transfer-Encoding: chunked'], chunkedThenHidden)],
    ['CL 0 and TE', post(['Content-Length: 0', 'Transfer-Encoding: chunked'], hidden)],
    ['two different CLs', post(['Content-Length: 0', `Content-Length: ${HIDDEN.length}`], HIDDEN)],
    ['two equal CLs', post(['Content-Length: 5', 'Content-Length: 5'], `hello${HIDDEN}`)],
    ['a list of CLs', post([`Content-Length: 0, ${HIDDEN.length}`], HIDDEN)],
    ['CL with a sign', post(['Content-Length: +5'], `hello${HIDDEN}`)],
    ['negative CL', post(['Content-Length: -1'], HIDDEN)],
    ['hexadecimal CL', post(['Content-Length: 0x5'], `hello${HIDDEN}`)],
    ['CL with two numbers', post(['Content-Length: 0 5'], HIDDEN)],
    ['CL beyond 64 bits', post(['Content-Length: 18446744073709551621'], `hello${HIDDEN}`)],
    ['empty CL', post(['Content-Length:'], HIDDEN)],
    ['TE xchunked', post(['Transfer-Encoding: xchunked'], chunkedThenHidden)],
    ['TE with vertical tab', post(['Transfer-Encoding: \x0bchunked'], chunkedThenHidden)],
    ['TE chunked, identity', post(['Transfer-Encoding: chunked, identity'], chunkedThenHidden)],
    ['TE identity, chunked', post(['Transfer-Encoding: identity, chunked'], chunkedThenHidden)],
    ['TE gzip, chunked', post(['Transfer-Encoding: gzip, chunked'], chunkedThenHidden)],
    ['TE twice', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunkedThenHidden)],
    ['TE chunked, then identity', post(['Transfer-Encoding: chunked', 'Transfer-Encoding: x'], chunkedThenHidden)],
    ['TE in quotes', post(['Transfer-Encoding: "chunked"'], chunkedThenHidden)],
    ['TE with a parameter', post(['Transfer-Encoding: chunked;q=0'], chunkedThenHidden)],
    ['empty TE', post(['Transfer-Encoding:'], chunkedThenHidden)],
    ['space before the colon of TE', post(['Transfer-Encoding : chunked'], chunkedThenHidden)],
    ['space before the colon of CL', post([`Content-Length : ${HIDDEN.length}`], HIDDEN)],
    ['tab before a colon', post(['X-Foo\t: bar'], '')],
    ['obs-fold', post(['X-Foo: bar', ' Transfer-Encoding: chunked'], chunkedThenHidden)],
    ['obs-fold with a tab', post(['X-Foo: bar', '\tbaz'], '')],
    ['a first line that begins with a space', `GET /a HTTP/1.1\r\n X: y\r\nHost: ${HOST}\r\n\r\n`],
    ['a line without a colon', post(['X-Foo'], '')],
    ['an empty field name', post([': bar'], '')],
    ['bare LF behind the request line', `GET /a HTTP/1.1\nHost: ${HOST}\r\n\r\n`],
    ['bare LF behind a field', `GET /a HTTP/1.1\r\nHost: ${HOST}\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`],
    ['bare LF at the end of the head', `GET /a HTTP/1.1\r\nHost: ${HOST}\r\n\n${HIDDEN}`],
    ['bare LF everywhere', `GET /a HTTP/1.1\nHost: ${HOST}\n\n${HIDDEN}`],
    ['bare CR in a field', post([`X-Foo: a\rContent-Length: ${HIDDEN.length}`], HIDDEN)],
    ['no Host', 'GET /api/v1/pods HTTP/1.1\r\n\r\n'],
    ['two versions', `GET /a HTTP/1.1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['tab in the request line', `GET\t/a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['a lower-case method', `get /a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['an unknown method', `SMUGGLE /a HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['NUL in the target', `GET /a\0b HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`],
    ['HTTP/0.9', 'GET /a\r\n\r\n'],
    ['HTTP/2 preface where HTTP/1.1 was negotiated', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/3.0', `GET /a HTTP/3.0\r\nHost: ${HOST}\r\n\r\n`],
    ['TE on HTTP/1.0', `POST /a HTTP/1.0\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n${hidden}`],
  ]
  for (const [name, bytes] of malformed) {
    test(`${name}: 400, the connection ends, nothing forwarded`, async () => {
      const client = await http1Connect(asAlice)
      client.send(Buffer.from(bytes, 'latin1'))
      await ended(client.raw)
      assert.match(client.raw.text(), /^HTTP\/1\.1 400 /)
      assert.equal(client.raw.text().match(/HTTP\/1\.1 /g)?.length, 1, 'one answer')
      assert.deepEqual(
        stub.seen.map(({ path }) => path),
        [],
      )
    })
  }

  for (const hosts of [
    [`Host: ${HOST}`, 'Host: other.example.com'],
    [`Host: x@${HOST}`],
    [`Host: ${HOST}/x`],
    [`Host: ${HOST} x`],
    [`Host: ${HOST}?x`],
  ]) {
    test(`${hosts.join(', ')}: 400, nothing forwarded`, async () => {
      assert.equal((await http1Request(asAlice, requestHead('GET /api/v1/pods', hosts))).status, 400)
      assert.equal(stub.seen.length, 0)
      assert.equal(other.seen.length, 0)
    })
  }

  const brokenBodies: [string, string][] = [
    ['a chunk size beyond 64 bits', `1${'0'.repeat(16)}5\r\nhello\r\n0\r\n\r\n`],
    ['a negative chunk size', `-5\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a chunk size with 0x', `0x5\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a chunk size with a space', `5 \r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['an empty chunk size', `\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['bare LF behind a chunk size', `5\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['bare LF behind a chunk', `5\r\nhello\n0\r\n\r\n${HIDDEN}`],
    ['bare LF at the end', `5\r\nhello\r\n0\n\n${HIDDEN}`],
    ['bare CR behind a chunk size', `5\rhello\r\n0\r\n\r\n${HIDDEN}`],
    ['LF in a chunk extension', `5;a=b\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a chunk that is longer than it says', `4\r\nhello\r\n0\r\n\r\n${HIDDEN}`],
    ['a trailer with a space before the colon', `0\r\nX-Foo : bar\r\n\r\n${HIDDEN}`],
  ]
  for (const [name, body] of brokenBodies) {
    test(`${name}: the connection ends, upstream gets no complete request`, async () => {
      let complete = 0
      stub.answer = (request) => {
        request.stream.on('end', () => {
          if (request.stream.rstCode !== 0) return
          complete++
          reply(request, 200, '{}')
        })
        request.stream.resume()
      }
      const client = await http1Connect(asAlice)
      client.send(post(['Transfer-Encoding: chunked'], body))
      await ended(client.raw)
      assert.ok(!/^HTTP\/1\.1 2/.test(client.raw.text()), client.raw.text())
      await waitFor('upstream to hear of it', () => stub.seen.every(({ stream }) => stream.closed || stream.destroyed))
      assert.equal(complete, 0)
      assert.ok(!stub.seen.some(({ path }) => path === '/smuggled'))
    })
  }

  test('a chunk size beyond 32 bits is not cut off', async () => {
    const client = await http1Connect(asAlice)
    stub.answer = (request) => {
      const chunks: Buffer[] = []
      request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.stream.on('data', () => {
        if (Buffer.concat(chunks).includes('smuggled')) reply(request, 200, '{"all":"body"}')
      })
    }
    client.send(post(['Transfer-Encoding: chunked'], `100000005\r\nhello\r\n0\r\n\r\n${HIDDEN}`))
    assert.equal((await client.response()).body.toString(), '{"all":"body"}')
    await ended(client.raw)
    assert.equal(stub.seen.length, 1)
  })

  test('a request in the body of another is a body', async () => {
    const bodies: string[] = []
    stub.answer = (request) => {
      const chunks: Buffer[] = []
      request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.stream.on('end', () => {
        bodies.push(Buffer.concat(chunks).toString())
        reply(request, 200, '{}')
      })
    }
    const client = await http1Connect(asAlice)
    client.send(post([`Content-Length: ${HIDDEN.length}`], HIDDEN))
    assert.equal((await client.response()).status, 200)
    client.send(post(['Transfer-Encoding: Chunked'], hidden))
    assert.equal((await client.response()).status, 200)
    client.destroy()
    assert.deepEqual(bodies, [HIDDEN, HIDDEN])
    assert.deepEqual(
      stub.seen.map(({ path }) => path),
      ['/api/v1/pods', '/api/v1/pods'],
    )
  })

  test('behind a refusal that did not wait for the body the connection ends', async () => {
    const client = await http1Connect(asAlice)
    const head = requestHead('POST /clusters/nobody/api', [`Content-Length: ${HIDDEN.length + 10}`])
    client.send(head + HIDDEN)
    assert.equal((await client.response()).status, 404)
    client.send(`0123456789${HIDDEN}`)
    await ended(client.raw)
    assert.equal(client.raw.text().match(/HTTP\/1\.1 /g)?.length, 1, 'one answer')
    assert.equal(stub.seen.length, 0)
  })

  test('an answer with Content-Length to a HEAD does not shift the next one', async () => {
    stub.answer = ({ stream, method }) => {
      stream.respond([':status', '200', 'content-length', '50'], { endStream: method === 'HEAD' })
      if (method !== 'HEAD') stream.end('x'.repeat(50))
    }
    const client = await http1Connect(asAlice)
    client.send(requestHead('HEAD /api/v1/pods') + requestHead('GET /api/v1/pods'))
    assert.equal((await client.response({ noBody: true })).status, 200)
    assert.equal((await client.response()).body.toString(), 'x'.repeat(50))
    client.destroy()
  })
})
