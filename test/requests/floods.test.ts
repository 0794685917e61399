// Too much or too little from one client: its connection ends, the others go on. (Of HTTP/2: http2-abuse.test.ts.)

import assert from 'node:assert/strict'
import { connect as tcpConnect } from 'node:net'
import { describe, test } from 'node:test'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import { attackedGateway, ended, HIDDEN, HOST } from '../harness/gateways/attacked-gateway.ts'
import { waitFor } from '../harness/wait.ts'

const { stub, asAlice, assertServing } = await attackedGateway()
const impatient = await attackedGateway({ headerTimeoutMs: 1_000, handshakeTimeoutMs: 1_000 })

describe('too much of it', () => {
  const big = 'x'.repeat(2_000_000)

  test('HTTP/1.1: a header field of 2 MB: 431, the connection ends, others go on', async () => {
    const client = await http1Connect(asAlice)
    client.send(requestHead('GET /api/v1/pods', [`X-Big: ${big}`]))
    assert.equal((await client.response()).status, 431)
    await ended(client.raw)
    assert.equal(stub.seen.length, 0)
    await assertServing()
  })

  test('HTTP/1.1: more than 2,000 header fields: 431, the connection ends', async () => {
    const client = await http1Connect(asAlice)
    client.send(requestHead('GET /api/v1/pods', new Array<string>(2_100).fill('X-A: b')) + HIDDEN)
    assert.equal((await client.response()).status, 431)
    await ended(client.raw)
    assert.equal(stub.seen.length, 0)
  })

  test('HTTP/1.1: a head within the limits passes whole', async () => {
    const fields = Array.from({ length: 1_500 }, (_, i) => `X-${i}: ${i}`)
    const long = `/api/v1/pods?fieldSelector=${'y'.repeat(30_000)}`
    const answer = await http1Request(asAlice, requestHead(`GET ${long}`, fields))
    assert.equal(answer.status, 200)
    assert.equal(stub.seen[0]?.path, long)
    assert.deepEqual(stub.seen[0]?.values('x-1499'), ['1499'])
  })
})

describe('too little of it', () => {
  test('HTTP/1.1: a head that comes a byte at a time: the connection ends', async () => {
    const client = await http1Connect(impatient.asAlice)
    const drip = setInterval(() => client.send('x'), 50)
    client.send(`GET /api/v1/pods HTTP/1.1\r\nHost: ${HOST}\r\nX-Slow: `)
    await ended(client.raw).finally(() => clearInterval(drip))
    assert.equal(impatient.stub.seen.length, 0)
  })

  test('HTTP/1.1: a connection on which nothing comes ends', async () => {
    const client = await http1Connect(impatient.asAlice)
    await ended(client.raw)
  })

  for (const [name, first] of [
    ['never begins', Buffer.alloc(0)],
    ['stops in the middle', Buffer.from([22, 3, 1, 2, 0, 1, 0, 1])],
  ] as const) {
    test(`a TLS handshake that ${name}: the connection ends`, async () => {
      const socket = tcpConnect({ host: '127.0.0.1', port: impatient.gateway.port })
      socket.on('error', () => undefined)
      socket.on('data', () => undefined)
      socket.write(first)
      await waitFor('the gateway to close the connection', () => socket.destroyed)
    })
  }

  test('plain HTTP on the TLS port: the connection ends, nothing is served', async () => {
    const socket = tcpConnect({ host: '127.0.0.1', port: impatient.gateway.port })
    let text = ''
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
    })
    socket.write(requestHead('GET /api/v1/pods'))
    await waitFor('the gateway to close the connection', () => socket.destroyed)
    assert.ok(!text.includes('200'))
    assert.equal(impatient.stub.seen.length, 0)
  })
})
