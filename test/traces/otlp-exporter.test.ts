import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { OtlpExporter } from '../../src/io/traces/otlp-exporter.ts'

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
