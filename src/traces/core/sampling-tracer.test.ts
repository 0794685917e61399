import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SamplingTracer } from './sampling-tracer.ts'

function tracer(random: () => number): SamplingTracer {
  return new SamplingTracer({ ratePerMillion: 0, callersPerSecond: 0, random, onCaller: () => undefined })
}

describe('identifiers of spans', () => {
  it('are 16 hexadecimal digits, another one each time, also across the sets in which they are made', () => {
    const length = 200
    const ids = tracer(Math.random)
    const made = Array.from({ length }, () => ids.newSpanId())
    for (const id of made) assert.match(id, /^[0-9a-f]{16}$/)
    assert.equal(new Set(made).size, length)
  })

  it('are never all zeros, which means none', () => {
    assert.equal(tracer(() => 0).newSpanId(), '0000000000000001')
    assert.equal(tracer(() => 1 - Number.EPSILON).newSpanId(), 'ffffffffffffffff')
  })
})
