// What is kept of heads and trailers over HTTP/1.1 that have come in part is counted, and nothing else.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Http1Side } from '../../../../../test/harness/frames/http1-side.ts'
import { type Refusal, refuse } from '../../../../kit/core/refusal/refusal.ts'
import { addressCharge } from '../../../../kit/core/shares/charge.ts'
import { OpenHeads } from '../../../../kit/core/shares/open-heads.ts'
import { SharedResource } from '../../../../kit/core/shares/shared-resource.ts'

const KIB = 1024
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'
const ADDRESS = addressCharge('127.0.0.1')

describe('memory of what has come in part', () => {
  const FIELD = `X-A: ${'y'.repeat(15_990)}\r\n`

  function counted(limit = 64 * 1024 * KIB): { side: Http1Side; held(): number } {
    const shared = new SharedResource('buffered-bytes', limit)
    const heads = new OpenHeads({ shared, refuse: (): Refusal => refuse('share-exceeded', 'no room') })
    const charge = ADDRESS
    const side = new Http1Side({ charge, heads: heads.of({ charge }), limits: { maxHeaderBytes: 1024 * KIB } })
    return { side, held: () => shared.unknown.held + heads.spare.unknown.held }
  }

  test('a head is counted until its end, a small one and bodies are not, and trailers are', () => {
    const { side, held } = counted()
    side.send(`${GET}GET / HTTP/1.1\r\nHost: a\r\n`)
    assert.equal(held(), 0)
    side.send(FIELD.repeat(10))
    assert.ok(held() >= 160_000 && held() <= 176 * KIB, `${held()}`)
    side.send('\r\n')
    assert.equal(held(), 0)
    side.send(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(100_000)}`)
    assert.equal(held(), 0)
    side.send(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n${FIELD.repeat(3)}`)
    assert.ok(held() >= 48_000)
    side.send('\r\n')
    assert.equal(held(), 0)
    assert.equal(side.requests.length, 4)
    side.send(`GET / HTTP/1.1\r\n${FIELD.repeat(3)}`)
    assert.ok(held() >= 48_000)
    side.connection.onSocketClosed()
    assert.equal(held(), 0)
  })

  test('many short fields count as their list does', () => {
    const { side, held } = counted()
    side.send(`GET / HTTP/1.1\r\n${'a:\r\n'.repeat(1_900)}`)
    assert.ok(held() >= 1_900 * 33, `${held()}`)
  })

  test('no room: 429, or the end if another answer is due', () => {
    for (const before of ['', GET]) {
      const shared = new SharedResource('buffered-bytes', KIB)
      const heads = new OpenHeads({ shared, refuse: (): Refusal => refuse('share-exceeded', 'no room') })
      const limits = { maxHeaderBytes: 1024 * KIB }
      let side = new Http1Side()
      for (let n = 0; n < 100 && !side.closed; n++) {
        side = new Http1Side({ charge: ADDRESS, heads: heads.of({ charge: ADDRESS }), limits })
        side.send(`${before}GET / HTTP/1.1\r\n${FIELD.repeat(60)}`)
      }
      assert.ok(side.closed)
      assert.equal(side.aborted, before !== '')
      if (before === '')
        assert.match(side.take(), /^HTTP\/1.1 429 Too Many Requests\r\nconnection: close\r\n.*no room/s)
      else assert.equal(side.take(), '')
    }
  })

  test('a line that comes byte by byte is read as if it came at once', () => {
    const side = new Http1Side()
    for (const char of `GET /${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`) side.send(char)
    assert.equal(side.requests[0]?.head[3]?.length, 20_001)
  })
})
