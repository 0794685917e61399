// What a client lists in Connection is read before anything is known about it: it costs about what any other field of that length does.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Http1Reader } from '../../src/gateway/io/listener/http1/reader.ts'
import { WITHOUT_PAUSE } from '../../src/http2/frame-reader.ts'
import { nanoseconds } from './measure.ts'

const BYTES = 1_000_000
const TRIALS = 5
/** Each octet is looked at once more, one by one. */
const MOST = 6
const SINK = {
  held: false,
  onHead: () => undefined,
  onBody: () => undefined,
  onTrailers: () => undefined,
  onInvalid: () => assert.fail('refused'),
}

function cost(name: string, options: string): number {
  const line = `${name}: ${options.repeat(500 / options.length)}\r\n`
  const head = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\n${line.repeat(BYTES / line.length)}\r\n`)
  return nanoseconds(() => new Http1Reader(SINK, 2 * BYTES).read(head, 0, 0, WITHOUT_PAUSE), TRIALS)
}

for (const options of [',', 'a,', 'c,', 'close ,']) {
  test(`a list of "${options}"`, () => {
    const ratio = cost('Connection', options) / cost('Connectiom', options)
    assert.ok(ratio < MOST, `${ratio} times another field`)
  })
}
