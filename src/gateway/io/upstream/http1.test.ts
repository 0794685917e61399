// Requests to an endpoint over HTTP/1.1: what is sent, what is taken for an answer, and which connections carry another request.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Http1Endpoint } from '../../../../test/harness/frames/http1-endpoint.ts'
import { turns } from '../../../../test/harness/turns.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import { MAX_INTERIM_ANSWERS } from '../../../http2/client.ts'
import { ANSWER_WATER_BYTES, HIGH_WATER_BYTES } from '../../../kit/api/stream.ts'
import { threadScheduler } from '../scheduling/thread-scheduler.ts'

const KIB = 1024
const ALIVE = 'connection: keep-alive\r\n\r\n'
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'

/** What else they send is read in the next one. */
function endpointsHaveUsedTheTurn(): void {
  const nowMs = performance.now()
  threadScheduler.beginShared(nowMs)
  threadScheduler.sharedDone(nowMs - 1_000, nowMs)
}

describe('a request', () => {
  test('is one write, with its body if that is there, and what is about the connection is left out', async () => {
    const endpoint = new Http1Endpoint()
    const fields = ['accept', 'a', 'te', 'trailers', 'host', 'b', 'upgrade', 'x', 'connection', 'x', 'keep-alive', '1']
    await endpoint.ask('POST', {
      fields: [...fields, 'transfer-encoding', 'x'],
      end: false,
      body: 'body',
      path: '/p?q',
    })
    const head = 'POST /p?q HTTP/1.1\r\nhost: a\r\naccept: a\r\n'
    assert.deepEqual(endpoint.socket.writes, [`${head}content-length: 4\r\n${ALIVE}body`])
  })

  for (const [method, framing] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', 'content-length: 0\r\n'],
    ['PUT', 'content-length: 0\r\n'],
    ['PATCH', 'content-length: 0\r\n'],
  ] as const) {
    test(`${method} without a body`, async () => {
      const endpoint = new Http1Endpoint()
      await endpoint.ask(method)
      assert.equal(endpoint.socket.text, `${method} / HTTP/1.1\r\nhost: a\r\n${framing}${ALIVE}`)
    })
  }

  test('a body without a length, in chunks; trailers are not sent', async () => {
    const endpoint = new Http1Endpoint()
    const { stream } = await endpoint.ask('POST', { end: false })
    assert.equal(endpoint.socket.text, `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n${ALIVE}`)
    endpoint.socket.text = ''
    stream.body(Buffer.from('hello'), false)
    stream.body(Buffer.alloc(0), false)
    stream.trailers(['x', 'y'])
    await turns()
    assert.equal(endpoint.socket.text, '5\r\nhello\r\n0\r\n\r\n')
  })

  test('a body with a length, piece by piece', async () => {
    const endpoint = new Http1Endpoint()
    const { stream } = await endpoint.ask('PUT', { end: false, fields: ['content-length', '10'] })
    stream.body(Buffer.from('01234'), false)
    await turns()
    stream.body(Buffer.from('56789'), true)
    await turns()
    assert.equal(endpoint.socket.text, `PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n${ALIVE}0123456789`)
  })

  for (const [what, body, end] of [
    ['longer', '0123', false],
    ['shorter', '01', true],
  ] as const) {
    test(`a body that is ${what} than its length: the connection ends`, async () => {
      const endpoint = new Http1Endpoint()
      const asked = await endpoint.ask('PUT', { end: false, fields: ['content-length', '3'] })
      asked.stream.body(Buffer.from(body), end)
      await turns()
      assert.equal(asked.reset, 'internal')
      assert.ok(endpoint.socket.destroyed)
      assert.ok(!endpoint.socket.text.includes(body))
    })

    test(`a body that is ${what} than its length, before the head is sent: nothing is sent`, async () => {
      const endpoint = new Http1Endpoint()
      const asked = await endpoint.ask('PUT', { end: false, fields: ['content-length', '3'], body })
      assert.equal(asked.reset, 'internal')
      assert.equal(endpoint.socket.text, '')
      assert.equal(endpoint.pool.short.streams, 0)
    })
  }

  test('expects 100 (Continue): the client is told so at once, and the endpoint is not asked', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask('POST', { end: false, fields: ['expect', '100-continue'] })
    assert.deepEqual(asked.heads, [[':status', '100']])
    assert.ok(!endpoint.socket.text.includes('expect'))
    // The endpoint was not asked for it, and the client is not told twice.
    await endpoint.socket.send(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)
    assert.deepEqual(
      asked.heads.map(([, status]) => status),
      ['100', '200'],
    )
  })

  for (const [what, options] of [
    ['a line end in a value', { fields: ['x', 'a\r\nb: c'] }],
    ['a line end in a name', { fields: ['x\r\ny', 'a'] }],
    ['a character that is not an octet', { fields: ['x', '\u560a'] }],
    ['a blank in the path', { path: '/ HTTP/1.1' }],
    ['no path', { path: 'a' }],
    ['a path with a character that is not an octet', { path: '/\u560a' }],
    ['a tunnel', { method: 'CONNECT' }],
    ['a method that is none', { method: 'GET / HTTP/1.1\r\na:' }],
    ['a length that is not a number', { fields: ['content-length', '+1'], end: false }],
  ] as const) {
    test(`${what}: none of it is sent`, async () => {
      const endpoint = new Http1Endpoint()
      const asked = await endpoint.ask('method' in options ? options.method : 'GET', {
        ...options,
        fields: [...('fields' in options ? options.fields : [])],
      })
      assert.ok(asked.reset === 'internal' || asked.reset === 'refused')
      assert.equal(endpoint.sockets[0]?.text ?? '', '')
      assert.equal(endpoint.pool.short.streams, 0)
      // A client with such requests ends no connection.
      const next = await endpoint.ask()
      await endpoint.socket.send(OK)
      assert.equal(next.body, 'ok')
      assert.equal(endpoint.sockets.length, 1)
    })
  }

  test('a body that the endpoint does not read waits in its stream, and its sender learns when it goes on', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask('POST', { end: false })
    const { socket } = endpoint
    socket.isBlocked = true
    for (let i = 0; i < 10; i++) asked.stream.body(Buffer.alloc(64 * KIB, 'x'), false)
    await turns()
    assert.ok(asked.stream.queued >= HIGH_WATER_BYTES, `${asked.stream.queued}`)
    asked.stream.body(Buffer.from('end'), true)
    for (let i = 0; i < 20; i++) {
      socket.unblock()
      await turns()
    }
    assert.equal(asked.stream.queued, 0)
    assert.ok(asked.drained > 0)
    assert.ok(socket.text.endsWith('0\r\n\r\n'))
    await socket.send(OK)
    assert.ok(asked.end)
  })
})

describe('answers', () => {
  test('come whole, and the connection carries the next request', async () => {
    const endpoint = new Http1Endpoint()
    for (const [answer, body] of [
      [OK, 'ok'],
      ['HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n', 'onetwo'],
      ['HTTP/1.1 204 No Content\r\n\r\n', ''],
      ['HTTP/1.1 304 Not Modified\r\n\r\n', ''],
      ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', ''],
      ['HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\n1', '1'],
      ['HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n2', '2'],
    ] as const) {
      const asked = await endpoint.ask()
      await endpoint.socket.send(answer)
      assert.ok(asked.end, answer)
      assert.equal(asked.body, body)
    }
    assert.equal(endpoint.sockets.length, 1)
    assert.equal(endpoint.pool.short.streams, 0)
    assert.deepEqual(endpoint.broken, [])
  })

  test('trailers', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask()
    await endpoint.socket.send('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n')
    assert.deepEqual(asked.trailers, ['x-sum', '7'])
  })

  test('until the end of the connection', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask()
    await endpoint.socket.send('HTTP/1.1 200 OK\r\n\r\nsome')
    await endpoint.socket.send('thing')
    assert.ok(!asked.end)
    await endpoint.socket.finish()
    assert.ok(asked.end)
    assert.equal(asked.body, 'something')
    assert.deepEqual(endpoint.broken, [])
  })

  test('until a connection breaks: not complete', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask()
    await endpoint.socket.send('HTTP/1.1 200 OK\r\n\r\nsome')
    endpoint.socket.destroy(new Error('reset'))
    await turns()
    assert.ok(!asked.end)
    assert.equal(asked.reset, 'connection')
    assert.deepEqual(endpoint.broken, ['reset'])
  })

  for (const [what, answer, method] of [
    ['says so', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok'],
    ['is of HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
    [
      'says that the connection has no second left',
      `HTTP/1.1 200 OK\r\nkeep-alive: max=5, timeout=2\r\n${OK.slice(17)}`,
    ],
    ['has bytes behind it', `${OK}HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong`],
    ['announces a body to 204', 'HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n'],
    ['announces a body to 304', 'HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['is one to HEAD', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n', 'HEAD'],
  ] as const) {
    test(`an answer that ${what} is the last one of its connection`, async () => {
      const endpoint = new Http1Endpoint()
      const first = await endpoint.ask(method)
      await endpoint.socket.send(answer)
      assert.ok(first.end)
      assert.equal(first.reset, undefined)
      const second = await endpoint.ask()
      assert.equal(endpoint.sockets.length, 2)
      assert.ok(!(endpoint.sockets[0]?.text.includes('GET') && endpoint.sockets[0].text.split('HTTP/1.1').length > 2))
      await endpoint.socket.send(OK)
      assert.equal(second.body, 'ok')
      assert.deepEqual(endpoint.broken, [])
    })
  }

  test('that are complete before the request is: the client gets them, and the connection ends', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask('POST', { end: false })
    asked.stream.body(Buffer.from('part'), false)
    await turns()
    await endpoint.socket.send(OK)
    assert.equal(asked.body, 'ok')
    assert.ok(asked.end)
    assert.ok(endpoint.socket.destroyed)
    asked.stream.body(Buffer.from('rest'), true)
    asked.stream.reset('cancel')
    await turns()
    assert.ok(!endpoint.socket.text.includes('rest'))
    assert.deepEqual(endpoint.broken, [])
  })

  // What is left of the body would be taken for the next request, or the next request for the rest of the body.
  for (const fields of [[], ['content-length', String(640 * KIB)]]) {
    const kind = fields.length === 0 ? 'in chunks' : 'with a length'
    test(`that are complete while the end of a body ${kind} waits to be sent: the connection carries no other request`, async () => {
      const endpoint = new Http1Endpoint()
      const asked = await endpoint.ask('POST', { end: false, fields })
      const first = endpoint.socket
      first.isBlocked = true
      for (let i = 1; i <= 10; i++) asked.stream.body(Buffer.alloc(64 * KIB, 'x'), i === 10)
      await turns()
      assert.ok(asked.stream.queued > 0)
      await first.send(OK)
      assert.equal(asked.body, 'ok')
      assert.ok(asked.end)
      assert.ok(first.destroyed)
      const next = await endpoint.ask('GET', { path: '/next' })
      first.unblock()
      await turns()
      assert.ok(!first.text.includes('/next'))
      await endpoint.socket.send(OK)
      assert.equal(next.body, 'ok')
      assert.equal(endpoint.sockets.length, 2)
      assert.deepEqual(endpoint.broken, [])
    })
  }

  test('that are complete while the endpoint does not read the last write, and close the connection: it ends soon', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask('POST', { end: false })
    const { socket } = endpoint
    socket.isBlocked = true
    asked.stream.body(Buffer.alloc(8 * KIB, 'x'), true)
    await turns()
    assert.equal(asked.stream.queued, 0)
    await socket.send(`HTTP/1.1 200 OK\r\nconnection: close\r\n${OK.slice(17)}`)
    assert.equal(asked.body, 'ok')
    assert.equal(endpoint.pool.short.streams, 0)
    await waitFor('the end of the connection', () => socket.destroyed)
  })

  test('that are not taken are not read on', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask()
    const { socket } = endpoint
    await socket.send(`HTTP/1.1 200 OK\r\ncontent-length: ${4 * ANSWER_WATER_BYTES}\r\n\r\n`)
    for (let i = 0; i < 4; i++) await socket.send('x'.repeat(ANSWER_WATER_BYTES))
    assert.equal(asked.body.length, ANSWER_WATER_BYTES)
    assert.ok(socket.isPaused())
    // All of it has come, and so has the end, when it is taken.
    await socket.finish()
    for (let i = 0; i < 4; i++) {
      asked.stream.credit(ANSWER_WATER_BYTES)
      await turns()
    }
    assert.equal(asked.body.length, 4 * ANSWER_WATER_BYTES)
    assert.ok(asked.end)
  })

  for (const [what, bytes, reset] of [
    ['no HTTP', 'SSH-2.0-x\r\n', 'connection'],
    ['another version', 'HTTP/2.0 200 OK\r\n\r\n', 'connection'],
    ['line ends without CR', 'HTTP/1.1 200 OK\n\n', 'connection'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n', 'connection'],
    ['a length twice', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\n', 'connection'],
    ['a length that is not a number', 'HTTP/1.1 200 OK\r\ncontent-length: 1, 1\r\n\r\n', 'connection'],
    ['another coding', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n', 'connection'],
    ['chunks of HTTP/1.0', 'HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n', 'connection'],
    ['a folded line', 'HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n', 'connection'],
    ['a blank in front of a colon', 'HTTP/1.1 200 OK\r\ncontent-length : 1\r\n\r\n', 'connection'],
    ['a size of a chunk that is none', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n', 'connection'],
    ['a chunk that is longer', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n', 'connection'],
    [
      'a length in trailers',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\ncontent-length: 1\r\n',
      'connection',
    ],
    [
      'a protocol that the gateway did not ask for',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
      'connection',
    ],
    ['an interim answer with a body', 'HTTP/1.1 103 Early Hints\r\ncontent-length: 1\r\n\r\n', 'connection'],
    ['a status that is none', 'HTTP/1.1 600 Odd\r\n\r\n', 'protocol'],
    ['a head without end', `HTTP/1.1 200 OK\r\na: ${'x'.repeat(300 * KIB)}`, 'protocol'],
    ['fields without end', `HTTP/1.1 200 OK\r\n${'a:\r\n'.repeat(5000)}`, 'protocol'],
    [
      'trailers without end',
      `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n${'a:\r\n'.repeat(5000)}`,
      'protocol',
    ],
    ['interim answers without end', 'HTTP/1.1 103 a\r\n\r\n'.repeat(MAX_INTERIM_ANSWERS + 1), 'protocol'],
    ['unasked 100 (Continue) without end', 'HTTP/1.1 100 a\r\n\r\n'.repeat(MAX_INTERIM_ANSWERS + 1), 'protocol'],
  ] as const) {
    test(`${what}: ${reset}, and the connection ends`, async () => {
      const endpoint = new Http1Endpoint()
      const asked = await endpoint.ask()
      await endpoint.socket.send(bytes)
      assert.ok(!asked.end)
      assert.equal(asked.reset, reset)
      assert.ok(endpoint.socket.destroyed)
      // A server that passes on what a pod sends is not down.
      assert.equal(endpoint.broken.length, reset === 'protocol' ? 0 : 1)
      assert.equal(endpoint.pool.short.streams, 0)
      assert.equal(endpoint.heldBytes, 0)
    })
  }

  test('a head that is open is charged, and refused if there is no memory for it', async () => {
    const endpoint = new Http1Endpoint()
    endpoint.mostHeadBytes = 64 * KIB
    const asked = await endpoint.ask()
    await endpoint.socket.send(`HTTP/1.1 200 OK\r\na: ${'x'.repeat(30 * KIB)}`)
    assert.ok(endpoint.heldBytes >= 30 * KIB)
    await endpoint.socket.send('x'.repeat(60 * KIB))
    assert.equal(asked.reset, 'protocol')
    assert.equal(endpoint.heldBytes, 0)
  })
})

describe('connections', () => {
  test('one for each request that runs, and the one that was used last for the next', async () => {
    const endpoint = new Http1Endpoint()
    await Promise.all([endpoint.ask(), endpoint.ask(), endpoint.ask()])
    assert.equal(endpoint.sockets.length, 3)
    const [, second] = endpoint.sockets
    await second?.send(OK)
    await endpoint.ask('GET', { path: '/next' })
    assert.equal(endpoint.sockets.length, 3)
    assert.ok(second?.text.includes('/next'))
  })

  test('bytes that come while it is free: it is not used again', async () => {
    const endpoint = new Http1Endpoint()
    await endpoint.ask()
    await endpoint.socket.send(OK)
    await endpoint.socket.send('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong')
    const asked = await endpoint.ask()
    assert.equal(endpoint.sockets.length, 2)
    await endpoint.socket.send(OK)
    assert.equal(asked.body, 'ok')
  })

  test('bytes that come before the next request is sent: the request goes to another one', async () => {
    const endpoint = new Http1Endpoint()
    await endpoint.ask()
    const [first] = endpoint.sockets
    await first?.send(OK)
    const asking = endpoint.ask('POST', { end: false, body: 'body' })
    first?.push(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong'))
    const asked = await asking
    assert.equal(endpoint.sockets.length, 2)
    assert.ok(!first?.text.includes('POST'))
    await endpoint.socket.send(OK)
    assert.equal(asked.body, 'ok')
    assert.ok(endpoint.socket.text.endsWith('body'))
    assert.deepEqual(endpoint.broken, [])
  })

  for (const [when, asksFirst] of [
    ['before the next request is sent', true],
    ['while it is free', false],
  ] as const) {
    test(`bytes that come ${when}, and wait for their turn of a busy thread: the request goes to another one`, async () => {
      const endpoint = new Http1Endpoint()
      await endpoint.ask()
      const [first] = endpoint.sockets
      await first?.send(OK)
      const asked = asksFirst ? endpoint.askNow('/next') : undefined
      endpointsHaveUsedTheTurn()
      first?.push(Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nwrong'))
      await undefined
      const late = asked ?? endpoint.askNow('/next')
      await turns()
      assert.equal(endpoint.sockets.length, 2)
      assert.ok(!first?.text.includes('/next'))
      await endpoint.socket.send(OK)
      assert.equal(late.body, 'ok')
      assert.deepEqual(endpoint.broken, [])
    })
  }

  test('the endpoint closes it before the next request is sent: the request goes to another one', async () => {
    const endpoint = new Http1Endpoint()
    await endpoint.ask()
    const [first] = endpoint.sockets
    await first?.send(OK)
    first?.push(null)
    const asked = await endpoint.ask('POST')
    assert.equal(endpoint.sockets.length, 2)
    await endpoint.socket.send(OK)
    assert.equal(asked.body, 'ok')
    assert.deepEqual(endpoint.broken, [])
  })

  test('the endpoint closes it when the request is sent: it may have run, and is not sent again', async () => {
    const endpoint = new Http1Endpoint()
    await endpoint.ask()
    await endpoint.socket.send(OK)
    const asked = await endpoint.ask('POST')
    await endpoint.socket.finish()
    assert.equal(asked.reset, 'connection')
    assert.equal(endpoint.sockets.length, 1)
    assert.equal(endpoint.broken.length, 1)
  })

  test('one that cannot be opened: the request was not sent, and others wait for theirs', async () => {
    const endpoint = new Http1Endpoint()
    endpoint.failure = new Error('refused')
    const asked = await endpoint.ask()
    assert.equal(asked.reset, 'refused')
    assert.deepEqual(endpoint.broken, ['refused'])
    assert.equal(endpoint.pool.short.streams, 0)
    endpoint.failure = undefined
    const next = await endpoint.ask()
    await endpoint.socket.send(OK)
    assert.equal(next.body, 'ok')
  })

  test('a request that is not wanted any more ends its connection', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask()
    asked.stream.reset('cancel')
    await turns()
    assert.ok(endpoint.socket.destroyed)
    assert.equal(endpoint.pool.short.streams, 0)
    assert.equal(asked.reset, undefined)
    assert.deepEqual(endpoint.broken, [])
  })

  test('a request that is not wanted any more before it is sent: the next one has its connection', async () => {
    const endpoint = new Http1Endpoint()
    await endpoint.ask()
    await endpoint.socket.send(OK)
    endpoint.askNow('/unsent').stream?.reset('cancel')
    const asked = await endpoint.ask('GET', { path: '/sent' })
    assert.equal(endpoint.sockets.length, 1)
    assert.ok(!endpoint.socket.text.includes('/unsent'))
    await endpoint.socket.send(OK)
    assert.equal(asked.body, 'ok')
  })

  test('a request that is not wanted any more before it has a connection', async () => {
    const endpoint = new Http1Endpoint()
    endpoint.askNow('/unsent').stream?.reset('cancel')
    await turns()
    assert.equal(endpoint.socket.text, '')
    assert.equal(endpoint.pool.short.streams, 0)
  })

  test('that are free are closed before the endpoint does so', async () => {
    const endpoint = new Http1Endpoint()
    await endpoint.ask()
    const [first] = endpoint.sockets
    await first?.send(`HTTP/1.1 200 OK\r\nkeep-alive: timeout=3\r\n${OK.slice(17)}`)
    assert.ok(!first?.writableEnded)
    const { now } = performance
    try {
      const later = now.call(performance) + 1100
      performance.now = () => later
      await endpoint.ask()
    } finally {
      performance.now = now
    }
    assert.ok(first?.writableEnded)
    assert.equal(endpoint.sockets.length, 2)
  })

  test('a drain: what runs goes on, what is free is closed, and nothing begins', async () => {
    const endpoint = new Http1Endpoint()
    const [running] = await Promise.all([endpoint.ask(), endpoint.ask()])
    const [first, second] = endpoint.sockets
    await second?.send(OK)
    endpoint.pool.drain()
    await turns()
    assert.ok(second?.writableEnded)
    assert.equal((await endpoint.ask()).reset, 'refused')
    await first?.send(OK)
    assert.equal(running.body, 'ok')
    assert.ok(first?.writableEnded)
    assert.equal(endpoint.sockets.length, 2)
  })

  test('the end: everything is reset', async () => {
    const endpoint = new Http1Endpoint()
    const asked = await endpoint.ask()
    endpoint.pool.destroy()
    assert.equal(asked.reset, 'connection')
    assert.ok(endpoint.socket.destroyed)
    assert.deepEqual(endpoint.broken, [])
  })
})
