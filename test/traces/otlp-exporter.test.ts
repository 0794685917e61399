import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { serverCharge } from '../../src/kit/core/shares/charge.ts'
import { threadAnswers } from '../../src/kube/io/answers/thread-answers.ts'
import { OtlpExporter } from '../../src/traces/io/otlp-exporter.ts'
import { waitFor } from '../harness/wait.ts'

test('a collector that is away leaves no listeners behind', async (t) => {
  const any = t.mock.method(AbortSignal, 'any')
  const quiet = (): void => undefined
  const failed = Promise.withResolvers<void>()
  const exporter = new OtlpExporter({
    // Nothing listens there.
    url: 'http://127.0.0.1:1/v1/traces',
    files: { ca: '', headers: {} } as never,
    resource: {},
    version: '0',
    clock: { now: () => 0, monotonic: () => 0 },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    random: () => 0,
    onSpans: () => failed.resolve(),
    onDropped: quiet,
    waits: { batchMs: 1, retryMs: 1 },
  })
  // The batches are sent without a reference to the event loop.
  const alive = setInterval(quiet, 1_000)
  t.after(() => clearInterval(alive))
  exporter.add([{ json: new Uint8Array(), count: 1 } as never])
  await failed.promise
  const signals = any.mock.calls.map((call) => [...(call.arguments[0] ?? [])][1])
  assert.ok(signals.length > 2, `${signals.length} attempts`)
  const [stopped] = signals
  assert.ok(stopped !== undefined)
  assert.equal(getEventListeners(stopped, 'abort').length, 0)
  await exporter.stop(0)
})

test('what a collector answers is counted before it is parsed, and its memory is charged', async (t) => {
  const texts = [
    `{"partialSuccess":{"rejectedSpans":1,"x":[${'{},'.repeat(15_000)}0]}}`,
    `{"partialSuccess":{"rejectedSpans":1,"x":"${'x'.repeat(70_000)}"}}`,
    `{"partialSuccess":{"rejectedSpans":1,"x":"${'x'.repeat(50_000)}"}}`,
  ]
  let seen = 0
  const server = createServer((_, response) => {
    const text = texts.shift() ?? '{}'
    response.write(text.slice(0, -1))
    if (texts.length > 0) {
      response.end('}')
      return
    }
    const looking = setInterval(() => {
      seen = Math.max(seen, threadAnswers.known.heldBy(charge.source))
      if (seen < 50_000) return
      clearInterval(looking)
      response.end('}')
    }, 1)
    response.on('close', () => clearInterval(looking))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const charge = serverCharge(origin)
  const quiet = (): void => undefined
  const results: string[] = []
  const exporter = new OtlpExporter({
    url: `${origin}/v1/traces`,
    files: { ca: '', headers: {} } as never,
    resource: {},
    version: '0',
    clock: { now: () => 0, monotonic: () => 0 },
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    random: () => 0,
    onSpans: (count, result) => void results.push(`${count} ${result}`),
    onDropped: quiet,
    waits: { batchMs: 1, retryMs: 1 },
  })
  t.after(() => exporter.stop(0))
  for (const expected of [['2 exported'], ['2 exported'], ['1 exported', '1 rejected']]) {
    results.length = 0
    exporter.add([{ json: new Uint8Array(), count: 2 } as never])
    await waitFor('the answer', () => results.length === expected.length)
    assert.deepEqual(results, expected)
  }
  assert.ok(seen >= 50_000, `${seen}`)
  assert.equal(threadAnswers.known.heldBy(charge.source), 0)
})
