import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRecord, type RequestRecord } from '../../gateway/api/request-record.ts'
import { AnswerColumn, createAnswerCountMemory } from '../../gateway/core/upstream/answer-counts.ts'
import { AnswerWindow } from './answer-window.ts'

function answered(change: Partial<RequestRecord> = {}): RequestRecord {
  return { ...createRecord(), attempts: 1, code: 200, upstreamMs: 3, durationMs: 4, ...change }
}

test('what counts: answers of upstream and requests without one; a failure is 5xx or no answer', () => {
  const see = (change: Partial<RequestRecord>): readonly [number, number] => {
    const memory = createAnswerCountMemory(1)
    const window = new AnswerWindow(memory, 10_000)
    window.sample(0)
    new AnswerColumn(memory, 0).count(answered(change))
    window.sample(1_000)
    const seen = window.seen()
    return [seen?.requests ?? -1, seen?.failed5xx ?? -1]
  }
  const table: readonly (readonly [Partial<RequestRecord>, readonly [number, number]])[] = [
    [{}, [1, 0]],
    [{ code: 500 }, [1, 1]],
    [{ code: 502 }, [1, 1]],
    [{ code: 503 }, [1, 1]],
    [{ code: 504 }, [1, 1]],
    [{ code: 404 }, [1, 0]],
    [{ code: 409 }, [1, 0]],
    [{ code: 429 }, [1, 0]],
    [{ code: 502, refusal: 'upstream-failed' }, [1, 1]],
    // The gateway's own refusals, sent upstream or not.
    [{ code: 503, refusal: 'no-endpoint', attempts: 0 }, [0, 0]],
    [{ code: 503, refusal: 'degraded', attempts: 0 }, [0, 0]],
    [{ code: 431, refusal: 'headers-too-large' }, [0, 0]],
    [{ code: 503, longRunning: true }, [0, 0]],
    // A client whose own timeout was too short, and one whose timeout expired.
    [{ code: 504, target: '/api/v1/pods?limit=1&timeout=1ms' }, [0, 0]],
    [{ code: 504, target: '/api/v1/pods?%74imeout=1ms&%zz' }, [0, 0]],
    [{ code: 504, target: '/api/v1/pods?timeout=10s', upstreamMs: 10_000 }, [1, 1]],
    [{ code: 504, target: '/api/v1/pods?limit=1' }, [1, 1]],
    [{ code: 500, target: '/api/v1/pods?timeout=1ms' }, [1, 1]],
    // A client that gave up waiting.
    [{ code: 0, aborted: 'client', upstreamMs: -1, durationMs: 10_000 }, [1, 0]],
  ]
  for (const [change, want] of table) assert.deepEqual(see(change), want, JSON.stringify(change))
})

test('the window slides over the columns of all threads, and over the end of the counters', () => {
  const memory = createAnswerCountMemory(2)
  memory.words.fill(-1)
  const columns = [new AnswerColumn(memory, 0), new AnswerColumn(memory, 1)]
  const window = new AnswerWindow(memory, 3_000)
  assert.equal(window.seen(), undefined)
  window.sample(0)
  assert.equal(window.seen(), undefined)
  for (let second = 1; second <= 10; second++) {
    for (const column of columns) column.count(answered({ upstreamMs: second * 100, code: second === 10 ? 503 : 200 }))
    window.sample(second * 1_000)
  }
  assert.deepEqual(window.seen(), { requests: 6, failed5xx: 2, p99Ms: 1_000, medianMs: 1_000, observedAtMs: 10_000 })
  for (let second = 11; second <= 14; second++) window.sample(second * 1_000)
  assert.equal(window.seen()?.requests, 0)
  assert.equal(window.seen()?.p99Ms, 0)
})

test('quantiles are upper bounds of buckets, and clients that do not wait say how long they did', () => {
  const memory = createAnswerCountMemory(1)
  const column = new AnswerColumn(memory, 0)
  const window = new AnswerWindow(memory, 60_000)
  window.sample(0)
  for (let i = 0; i < 98; i++) column.count(answered({ upstreamMs: 3 }))
  for (let i = 0; i < 2; i++) column.count(answered({ code: 0, upstreamMs: -1, durationMs: 8_000, aborted: 'client' }))
  window.sample(1)
  assert.equal(window.seen()?.medianMs, 5)
  assert.equal(window.seen()?.p99Ms, 10_000)
  for (let i = 0; i < 100; i++) column.count(answered({ upstreamMs: 1e9 }))
  window.sample(2)
  assert.equal(window.seen()?.p99Ms, 60_000)
})
