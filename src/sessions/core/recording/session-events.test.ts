import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type CastEvent, castEvent, parseCastEvent } from './asciicast.ts'
import { ForwardBytes, ForwardText } from './forward-text.ts'
import { ForwardEvents } from './session-events.ts'

const ONE = { number: 1, port: 80 }
const TWO = { number: 2, port: 8080 }

/** As a file has them. */
function recorded(input: boolean): { readonly events: CastEvent[]; readonly sink: ForwardEvents['sink']['ofForward'] } {
  const events: CastEvent[] = []
  const { sink } = new ForwardEvents(input, (code, data) => {
    const event = parseCastEvent(castEvent(0, code, data))
    assert.ok(event)
    events.push(event)
  })
  return { events, sink: sink.ofForward }
}

const pairs = (events: readonly CastEvent[]): string[] => events.map(({ code, data }) => `${code} ${data}`)
const text = (events: readonly CastEvent[]): string => {
  const shown = new ForwardText()
  return events.map((event) => shown.show(event) ?? '').join('')
}

test('markers say whose bytes follow, where it is not the same connection as before', () => {
  const { events, sink } = recorded(true)
  sink.begin(ONE)
  sink.fromClient(ONE, Buffer.from('a'))
  sink.begin(TWO)
  sink.toClient(ONE, Buffer.from('b'))
  sink.toClient(ONE, Buffer.from('c'))
  sink.toClient(TWO, Buffer.from('d'))
  sink.error(ONE, Buffer.from('refused'))
  sink.end(ONE)
  assert.deepEqual(pairs(events), [
    'm connection 1 to port 80 begins',
    'i a',
    'm connection 2 to port 8080 begins',
    'm connection 1 to port 80',
    'o b',
    'o c',
    'm connection 2 to port 8080',
    'o d',
    'm connection 1 to port 80 error: refused',
    'm connection 1 to port 80 ends',
  ])
})

test('what clients send is recorded only if asked for', () => {
  const { events, sink } = recorded(false)
  sink.begin(ONE)
  sink.fromClient(ONE, Buffer.from('password'))
  sink.toClient(ONE, Buffer.from('ok'))
  assert.deepEqual(pairs(events).slice(1), ['o ok'])
})

test('any bytes of any connection are in the file as they were', () => {
  const piece = fc.tuple(fc.boolean(), fc.boolean(), fc.uint8Array({ maxLength: 300 }))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const { events, sink } = recorded(true)
      sink.begin(ONE)
      sink.begin(TWO)
      for (const [isFirst, isSent, bytes] of pieces)
        sink[isSent ? 'fromClient' : 'toClient'](isFirst ? ONE : TWO, bytes)
      for (const connection of [ONE, TWO]) {
        for (const code of ['i', 'o'] as const) {
          const wanted = new ForwardBytes(connection.number, code)
          const found = events.flatMap((event) => wanted.take(event) ?? [])
          const sent = pieces.filter(
            ([isFirst, isSent]) => isFirst === (connection === ONE) && isSent === (code === 'i'),
          )
          assert.ok(wanted.isFound)
          assert.ok(Buffer.concat(found).equals(Buffer.concat(sent.map(([, , bytes]) => bytes))))
        }
      }
    }),
  )
})

test('what is shown is printable ASCII, whatever has passed', () => {
  const { events, sink } = recorded(true)
  sink.begin(ONE)
  sink.fromClient(ONE, Buffer.from('GET /\\ HTTP/1.1\r\nx: ä\t\x1b]52;c;eA==\x07\n\nend'))
  sink.toClient(ONE, Buffer.from([0x9b, 0x36, 0x6e, 0xff]))
  sink.error(ONE, Buffer.from('no\x1b[2J\nconnection 7 to port 1 begins'))
  assert.equal(
    text(events),
    [
      'connection 1 to port 80 begins',
      '1:80 > GET /\\\\ HTTP/1.1\\r\\n',
      '1:80 > x: \\xc3\\xa4\\t\\x1b]52;c;eA==\\x07\\n',
      '1:80 > \\n',
      '1:80 > end',
      '1:80 < \\x9b6n\\xff',
      'connection 1 to port 80 error: no\\x1b[2J\\nconnection 7 to port 1 begins',
      '',
    ].join('\n'),
  )
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const one = recorded(true)
      one.sink.begin(ONE)
      one.sink.toClient(ONE, bytes)
      one.sink.error(ONE, bytes)
      assert.ok(!/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(text(one.events).replaceAll('\n', '')))
    }),
  )
})

test('bytes that look like a marker are bytes', () => {
  const { events, sink } = recorded(true)
  sink.begin(ONE)
  sink.toClient(ONE, Buffer.from('connection 2 to port 8080'))
  sink.toClient(ONE, Buffer.from('x'))
  const wanted = new ForwardBytes(2, 'o')
  assert.deepEqual(
    events.flatMap((event) => wanted.take(event) ?? []),
    [],
  )
  assert.equal(wanted.isFound, false)
})
