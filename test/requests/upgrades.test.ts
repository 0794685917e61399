// Upgrades: two connections become one only after 101, and nothing else ever reaches upstream behind a request.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { h2Request } from '../harness/clients/h2-client.ts'
import { http1Connect, http1Request, requestHead } from '../harness/clients/http1-client.ts'
import {
  GOAWAY,
  HEADERS,
  headerBlock,
  headersFrames,
  openFrames,
  RST_STREAM,
  readFrames,
} from '../harness/frames/h2-frames.ts'
import {
  ALICE_GROUPS,
  alice,
  assertAlice,
  attackedGateway,
  clientCA,
  EXEC,
  EXEC_HOST,
  ended,
  HIDDEN,
  HOST,
} from '../harness/gateways/attacked-gateway.ts'
import { startInProcess } from '../harness/gateways/in-process.ts'
import { clusterObject } from '../harness/objects/objects.ts'
import { SWITCH } from '../harness/upstreams/stub-http1.ts'
import { waitFor } from '../harness/wait.ts'

const { stub, other, http1, gateway, session, asAlice } = await attackedGateway()

describe('upgrades', () => {
  const exec = () => http1Connect({ port: gateway.port, serverName: EXEC_HOST, cert: alice })
  const upgradeTo = (protocol: string, fields: string[] = [], target = EXEC): string =>
    requestHead(`POST ${target}`, [`Host: ${EXEC_HOST}`, 'Connection: Upgrade', `Upgrade: ${protocol}`, ...fields])

  for (const protocol of ['websocket', 'SPDY/3.1', 'WebSocket']) {
    test(`${protocol}: after 101 the connections are one, under the identity of the client`, async () => {
      const client = await exec()
      client.send(`${upgradeTo(protocol, ['Impersonate-Tenant: x', 'X-Remote-User: admin'])}first`)
      assert.equal((await client.response()).status, 101)
      client.send('second')
      await client.raw.until(/\r\n\r\nfirstsecond$/)
      const [seen] = http1.upgrades
      assert.ok(seen)
      assert.equal(seen.path, EXEC)
      assert.deepEqual(seen.values('impersonate-user'), ['alice'])
      assert.deepEqual(seen.values('impersonate-group'), ALICE_GROUPS)
      assert.deepEqual(seen.values('authorization'), ['Bearer gateway-token'])
      assert.deepEqual(seen.values('connection'), ['Upgrade'])
      assert.deepEqual(seen.values('upgrade'), [protocol])
      assert.deepEqual(seen.values('x-remote-user'), [])
      client.destroy()
      await waitFor('upstream to hear of the end', () => seen.closed())
    })
  }

  for (const answer of [
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n',
    'HTTP/1.1 307 Temporary Redirect\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 500 Oh\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nno',
    'HTTP/1.1 200 OK\r\n\r\nno',
  ]) {
    test(`${answer.slice(9, 12)} instead of 101: an answer, then the end; nothing behind it is forwarded`, async () => {
      http1.answerUpgrade = ({ socket }) => {
        socket.write(answer)
        if (!/length|chunked/i.test(answer)) socket.end()
      }
      const client = await exec()
      client.send(upgradeTo('websocket') + HIDDEN)
      const got = await client.response()
      assert.equal(got.status, Number(answer.slice(9, 12)))
      assert.equal(got.body.toString(), 'no')
      assert.deepEqual(got.values('connection'), ['close'])
      assert.deepEqual(got.values('upgrade'), [])
      client.send(HIDDEN)
      await ended(client.raw)
      await waitFor('the connection to upstream to end', () => http1.upgrades[0]?.closed() === true)
      assert.equal(http1.upgrades[0]?.received(), '')
      assert.equal(client.raw.text().match(/HTTP\/1\.1 /g)?.length, 1, 'one answer')
      assert.equal(http1.seen.length, 0)
    })
  }

  test('an answer other than 101 that breaks off is not ended cleanly', async () => {
    http1.answerUpgrade = ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n')
      setImmediate(() => socket.destroy())
    }
    const client = await exec()
    client.send(upgradeTo('websocket'))
    assert.equal((await client.response()).complete, false)
  })

  test('upstream closes without an answer: 502, the connection ends', async () => {
    http1.answerUpgrade = ({ socket }) => void socket.destroy()
    const client = await exec()
    client.send(upgradeTo('websocket'))
    const got = await client.response()
    assert.equal(got.status, 502)
    assert.ok(!got.body.toString().includes(String(http1.port)))
    await ended(client.raw)
    assert.equal(http1.upgrades.length, 1, 'sent once')
  })

  test('101 without having been asked is no upgrade', async () => {
    http1.answer = ({ message }) => void message.socket.write(SWITCH)
    const client = await exec()
    client.send(requestHead('GET /api/v1/pods', [`Host: ${EXEC_HOST}`]))
    assert.equal((await client.response()).status, 502)
    client.destroy()
  })

  test('an upgrade with a body is none', async () => {
    const client = await exec()
    client.send(`${upgradeTo('websocket', ['Content-Length: 5'])}hello`)
    assert.equal((await client.response()).status, 400)
    client.destroy()
    assert.equal(http1.upgrades.length, 0)
    assert.equal(http1.seen.length, 0)
  })

  for (const protocol of ['h2c', 'HTTP/2.0', 'TLS/1.0', 'foo', 'websocket, h2c']) {
    test(`Upgrade: ${protocol} is ignored, as RFC 9110 section 7.8 allows`, async () => {
      const fields = [`Connection: Upgrade, HTTP2-Settings`, `Upgrade: ${protocol}`, 'HTTP2-Settings: AAMAAABkAARAAAAA']
      const answer = await http1Request(asAlice, requestHead('GET /api/v1/pods', fields))
      assert.equal(answer.status, 200)
      for (const gone of ['upgrade', 'connection', 'http2-settings']) assert.deepEqual(stub.seen[0]?.values(gone), [])
      assertAlice(stub.seen[0])
    })
  }

  test('exec without an upgrade, and over HTTP/2: 400', async () => {
    const client = await exec()
    client.send(requestHead(`POST ${EXEC}`, [`Host: ${EXEC_HOST}`]))
    assert.equal((await client.response()).status, 400)
    client.destroy()
    assert.equal((await h2Request(session, [':method', 'POST', ':path', EXEC])).status, 400)
    assert.equal(stub.seen.length + http1.seen.length + http1.upgrades.length, 0)
  })

  test('an upgrade that is refused ends the connection, and what is behind it is no request', async () => {
    const client = await http1Connect(asAlice)
    const head = requestHead(`POST ${EXEC}`, ['Host: nobody.example.com', 'Connection: Upgrade', 'Upgrade: websocket'])
    client.send(head + HIDDEN)
    assert.equal((await client.response()).status, 404)
    client.send(HIDDEN)
    await ended(client.raw)
    assert.equal(stub.seen.length + http1.upgrades.length, 0)
  })

  test('an upgrade pipelined behind an open request: no answer of one is read as the other’s', async () => {
    let open = 0
    http1.answer = () => open++
    const client = await exec()
    client.send(requestHead('GET /api/v1/pods', [`Host: ${EXEC_HOST}`]))
    await waitFor('the request at upstream', () => open === 1)
    client.send(upgradeTo('websocket'))
    await ended(client.raw)
    assert.equal(client.raw.text(), '')
    assert.equal(http1.upgrades.length, 0)
  })

  test('an upgrade over HTTP/1.0 is ignored', async () => {
    const client = await exec()
    client.send(`GET /api/v1/pods HTTP/1.0\r\nHost: ${EXEC_HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    assert.equal((await client.response()).status, 200)
    client.destroy()
    assert.equal(http1.upgrades.length, 0)
  })

  test('CONNECT: no tunnel over HTTP/1.1, none over HTTP/2', async () => {
    const client = await http1Connect(asAlice)
    client.send(`CONNECT 127.0.0.1:${other.port} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n${HIDDEN}`)
    await ended(client.raw)
    assert.ok(!client.raw.text().startsWith('HTTP/1.1 2'))
    for (const list of [
      [':method', 'CONNECT', ':authority', HOST],
      [':method', 'CONNECT', ':protocol', 'websocket', ':path', EXEC, ':scheme', 'https', ':authority', HOST],
    ]) {
      const frames = await openFrames(asAlice)
      frames.send(headersFrames(1, headerBlock(list), 0))
      await waitFor('an answer', () =>
        readFrames(frames.received()).some(
          ({ type, stream }) => type === GOAWAY || (stream === 1 && (type === HEADERS || type === RST_STREAM)),
        ),
      )
      // A status of the 2xx kind would be an open tunnel; `:status 200` is one byte, 0x88, in HPACK's static table.
      const head = readFrames(frames.received()).find(({ type }) => type === HEADERS)
      assert.notEqual(head?.payload[0], 0x88)
      frames.destroy()
    }
    assert.equal(stub.seen.length + other.seen.length, 0)
  })

  test('a client that leaves during the upgrade gives back its place', async () => {
    const flow = { flowControlSchemas: [{ name: 'one', maxRequestsInflight: { max: 1 } }] }
    const limited = await startInProcess([
      clusterObject([], {
        name: EXEC_HOST,
        clientCA,
        spec: {
          servers: [{ endpoint: http1.url }],
          clientConfig: { insecure: true, bearerToken: 'eA==' },
          flowControl: flow,
          dispatchPolicies: [
            { rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }], flowControlSchemaName: 'one' },
          ],
        },
      }),
    ])
    try {
      const open = () => http1Connect({ port: limited.port, serverName: EXEC_HOST, cert: alice })
      http1.answerUpgrade = () => undefined
      const first = await open()
      first.send(upgradeTo('websocket'))
      await waitFor('the upgrade at upstream', () => http1.upgrades.length === 1)
      const second = await open()
      second.send(upgradeTo('websocket'))
      assert.equal((await second.response()).status, 429)
      first.destroy()
      await waitFor('the end at upstream', () => http1.upgrades[0]?.closed())
      http1.answerUpgrade = ({ socket }) => void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n')
      const third = await waitFor('a free place', async () => {
        const client = await open()
        client.send(upgradeTo('websocket'))
        const { status } = await client.response()
        client.destroy()
        return status !== 429 && status
      })
      assert.equal(third, 403)
    } finally {
      await limited.stop()
    }
  })
})
