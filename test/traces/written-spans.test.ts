// The text of spans, which is put together from constant parts, against the same spans as objects: of any request.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createRecord, type RequestRecord } from '../../src/gateway/api/request-record.ts'
import type { RequestTrace } from '../../src/gateway/api/request-trace.ts'
import { type WrittenSpans, writeSpans } from '../../src/traces/core/otlp.ts'
import { envelope } from '../../src/traces/core/otlp-json.ts'
import { documentOf } from '../../src/traces/io/otlp-exporter.ts'
import { spanObjects } from './span-objects.ts'

/** Some that have to be escaped, half a surrogate pair, and some longer than what is kept of them. */
const anyText = fc.oneof(
  fc.constantFrom(
    '',
    'GET',
    'pods',
    'namespaces',
    '"\\\n\u0000',
    '\u2028\ud800',
    'é€😀',
    'a?b=c',
    'host:6443',
    '😀'.repeat(200),
  ),
  fc.string({ maxLength: 300, unit: 'binary' }),
  fc.string({ maxLength: 300 }),
)
const reached = fc.oneof(fc.constant(-1), fc.double({ min: 0, max: 1e7, noNaN: true }))
const bytes = fc.oneof(fc.constantFrom(-1, 0), fc.nat(), fc.maxSafeNat())
const hex = (length: number): fc.Arbitrary<string> =>
  fc.string({ minLength: length, maxLength: length, unit: fc.constantFrom(...'0123456789abcdef') })

const anyRecord: fc.Arbitrary<RequestRecord> = fc
  .record({
    auditId: anyText,
    method: fc.oneof(fc.constantFrom('GET', 'POST', 'TRACE', 'get'), anyText),
    target: anyText,
    host: anyText,
    protocol: fc.constantFrom('h2', 'http/1.1'),
    remoteAddress: anyText,
    userAgent: anyText,
    cluster: anyText,
    verb: anyText,
    apiGroup: anyText,
    resource: anyText,
    subresource: anyText,
    namespace: anyText,
    name: anyText,
    user: anyText,
    impersonator: anyText,
    flowControl: anyText,
    refusal: anyText,
    refusalRule: anyText,
    aborted: fc.constantFrom('', 'client', 'upstream'),
    startMs: fc.double({ min: 0, max: 1e7, noNaN: true }),
    startWallMs: fc.oneof(fc.integer({ min: 1_600_000_000_000, max: 4_000_000_000_000 }), fc.constantFrom(0, 1, 999)),
    code: fc.constantFrom(0, 200, 404, 429, 500, 503),
    requestBytes: bytes,
    responseBytes: bytes,
    policy: fc.integer({ min: -1, max: 100 }),
    rule: fc.integer({ min: -1, max: 100 }),
    isResourceRequest: fc.boolean(),
    longRunning: fc.boolean(),
    shadow: fc.array(anyText, { maxLength: 3 }),
  })
  .map((values) => ({ ...createRecord(), ...values }))

const anyTrace: fc.Arbitrary<RequestTrace> = fc.record({
  traceId: hex(32),
  spanId: hex(16),
  parentId: fc.oneof(fc.constant(''), hex(16)),
  traceState: anyText,
  authenticatedMs: reached,
  identifiedMs: reached,
  admittedMs: reached,
  attempts: fc.array(
    fc.record({
      spanId: hex(16),
      endpoint: fc.oneof(
        fc.constantFrom('https://10.0.0.1:6443', 'http://a', 'https://[::1]:1', 'https://[::1]'),
        anyText,
      ),
      pickMs: reached,
      sentMs: reached,
      headMs: reached,
      endMs: reached,
      code: fc.constantFrom(0, 200, 404, 503),
      error: anyText,
    }),
    { maxLength: 3 },
  ),
  ended: fc.boolean(),
})

/** Identifiers that tell in which order they were asked for. */
function ids(): () => string {
  let last = 0
  return () => String(++last).padStart(16, '0')
}

test('what is written parses to exactly the same spans', () => {
  const request = fc.tuple(anyRecord, anyTrace, fc.double({ min: 0, max: 1e7, noNaN: true }), fc.boolean())
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 3 }), (requests) => {
      const expected: unknown[] = []
      const batch: WrittenSpans[] = []
      let count = 0
      for (const [record, trace, endMs, userAttributes] of requests) {
        expected.push(...spanObjects(record, trace, endMs, { userAttributes, newSpanId: ids() }))
        const written = writeSpans(record, trace, endMs, { userAttributes, newSpanId: ids() })
        batch.push(written)
        count += written.count
      }
      const around = envelope({ 'service.name': 'a "name"' }, '1.0.0')
      const text = documentOf(around, batch).toString('utf8')
      const attributes = [{ key: 'service.name', value: { stringValue: 'a "name"' } }]
      const scopeSpans = [{ scope: { name: 'portcullis', version: '1.0.0' }, spans: expected }]
      // The length too: a field that is there twice is not seen in what was parsed.
      const objects = { resourceSpans: [{ resource: { attributes }, scopeSpans }] }
      assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(objects)))
      assert.equal(text.length, JSON.stringify(objects).length)
      assert.equal(count, expected.length)
    }),
    { numRuns: 300 },
  )
})
