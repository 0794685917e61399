// The ceiling counts what the code allows: its numbers are those of the constants that bound caches and queues, the table of sizes in
// docs/memory.md is what it computes, and the chart's pod gets what the gateway needs.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { loadConfig } from '../../src/process/config/config.ts'
import { BOUNDS, type MemoryBounds, YOUNG_GENERATION } from '../../src/process/core/memory/ceiling.ts'
import { logMemoryPlan, planMemory } from '../../src/program/memory/memory-plan.ts'

const ROOT = join(import.meta.dirname, '../..')
const GIB = 1024 ** 3

/** Bound -> file and constant, and its expression where that is not a plain number. */
const CONSTANTS: Readonly<Record<keyof MemoryBounds, readonly [file: string, constant: string]>> = {
  acceptedTokenBytes: ['src/gateway/io/reviews/token-review.ts', 'MAX_REMEMBERED_BYTES'],
  rejectedTokens: ['src/gateway/io/reviews/token-review.ts', 'MAX_REJECTED'],
  accessReviews: ['src/gateway/io/reviews/access-review.ts', 'MAX_REMEMBERED'],
  budgetUsers: ['src/gateway/state/user-budgets.ts', 'MAX_USERS'],
  heldAnswerBytes: ['src/gateway/request/held-answer.ts', 'MAX_ALL_HELD_BYTES'],
  ownAnswerBytes: ['src/kube/io/answers/thread-answers.ts', 'MAX_ANSWER_BYTES'],
  parsedAnswerBytes: ['src/kube/core/answers/answer-limits.ts', 'MAX_OBJECT_BYTES'],
  pooledBytes: ['src/http2/slabs.ts', 'MAX_POOLED'],
  pooledFrameBytes: ['src/http2/slabs.ts', 'MAX_POOLED_FRAMES'],
  pooledShortBytes: ['src/http2/slabs.ts', 'MAX_POOLED_SHORT'],
  scratchBytes: ['src/http2/hpack/scratch.ts', 'MAX_SCRATCH_BYTES'],
  spareHeadBytes: ['src/kit/core/shares/open-heads.ts', 'SPARE_BYTES'],
  controlHeadBytes: ['src/program/wiring/wire.ts', 'OPEN_HEAD_BYTES'],
  unreadBytes: ['src/gateway/io/socket/unread-output.ts', 'MAX_UNREAD_BYTES'],
  topNames: ['src/insight/core/top/traffic.ts', 'CAPACITY'],
  auditBodyBytes: ['src/audit/core/recorded-body.ts', 'MAX_RECORDED_BYTES'],
  outboxCharacters: ['src/program/threads/thread/outbox.ts', 'MAX_UNDERWAY'],
  logCharacters: ['src/kit/io/logs/line-writer.ts', 'MAX_QUEUED'],
  threadTraces: ['src/traces/app/observers.ts', 'MAX_WAITING'],
  traces: ['src/traces/io/otlp-exporter.ts', 'MAX_WAITING'],
  taps: ['src/insight/app/tap/tap-route.ts', 'MAX_TAPS'],
  tapEvents: ['src/insight/app/tap/tap-route.ts', 'CREDIT'],
  auditWebhookCharacters: ['src/audit/io/webhook/audit-webhook.ts', 'MAX_HELD'],
  webhookBytes: ['src/protection/webhooks/webhook.ts', 'MAX_WAITING_BYTES'],
  apiBodyBytes: ['src/apiserver/server.ts', 'MAX_ALL_BODY_BYTES'],
  apiAnswerBytes: ['src/apiserver/server.ts', 'MAX_ALL_ANSWER_BYTES'],
  adminConnections: ['src/gateway/io/listener/http-plain.ts', 'MAX_CONNECTIONS'],
  storeBytes: ['src/apiserver/io/store/objects.ts', 'REMEMBERED_BYTES'],
}
/** What stands in the code as a number of pieces. */
const PIECES: Partial<Record<keyof MemoryBounds, number>> = {
  pooledBytes: 32 * 1024,
  pooledFrameBytes: 16 * 1024 + 9,
  pooledShortBytes: 2 * 1024,
}

test('each bound is that of the constant', () => {
  for (const [name, [file, constant]] of Object.entries(CONSTANTS)) {
    const bound = name as keyof MemoryBounds
    const text = readFileSync(join(ROOT, file), 'utf8')
    const found = new RegExp(`const ${constant}(?:: number)? = ([\\d_]+(?: \\* [\\d_]+)*)`).exec(text)?.[1]
    assert.ok(found !== undefined, `${file} has ${constant}`)
    const product = found.split(' * ').reduce((sum, factor) => sum * Number(factor.replaceAll('_', '')), 1)
    assert.equal(product * (PIECES[bound] ?? 1), BOUNDS[bound], `${bound} is ${constant} of ${file}`)
  }
})

test('the main thread starts with the young generation that is counted', () => {
  // V8 has two halves of this size, and as much for large objects.
  const flag = `--max-semi-space-size=${YOUNG_GENERATION / 3 / 1024 ** 2}`
  for (const file of ['bin/portcullis', 'deploy/image/portcullis']) {
    const found = /--max-semi-space-size=\d+/.exec(readFileSync(join(ROOT, file), 'utf8'))?.[0]
    assert.equal(found, flag, file)
  }
})

function planned(threads: number, controlGroupBytes: number): ReturnType<typeof planMemory> {
  const flags = {
    source: 'kubernetes',
    controlKubeconfig: 'k',
    controlListen: '127.0.0.1:9443',
    threads: String(threads),
  }
  const config = loadConfig({ flags, env: {}, readFile: () => '' })
  return planMemory(config, { controlGroupBytes, machineBytes: 64 * GIB, openFiles: 0 })
}

test('the table of sizes in docs/memory.md is what is computed', () => {
  const page = readFileSync(join(ROOT, 'docs/memory.md'), 'utf8')
  const rows = [
    ...page.matchAll(/^\| (\d+(?:\.\d+)?) GiB \| (\d) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| (\d+) MiB \|$/gm),
  ]
  assert.ok(rows.length >= 4)
  for (const [row, gib, threads, ...shown] of rows) {
    const { config, ceiling, limitBytes } = planned(Number(threads), Number(gib) * GIB)
    assert.ok(ceiling.bytes <= limitBytes, row)
    const { maxConnections, maxRequestsInflight, maxWatches, maxBufferedBytes } = config
    const values = [maxConnections, maxWatches, maxRequestsInflight, Math.floor(maxBufferedBytes / 1024 ** 2)]
    assert.deepEqual(
      shown.map((text) => Number(text.replaceAll(',', ''))),
      values.map((value, i) => (i === 3 ? value : Math.floor(value / 100) * 100)),
      row,
    )
  }
})

test('the line of the log in docs/memory.md is what is said', () => {
  const page = readFileSync(join(ROOT, 'docs/memory.md'), 'utf8')
  const shown = /^\{"level":"info","ceiling":"2048Mi".*\n.*\}$/m.exec(page)?.[0] ?? ''
  const infos: Readonly<Record<string, unknown>>[] = []
  const quiet = (): void => undefined
  const info = (_: string, fields: Readonly<Record<string, unknown>> = {}): void => void infos.push(fields)
  logMemoryPlan(planned(1, 2 * GIB), { debug: quiet, info, warn: quiet, error: quiet })
  const [{ maxConnections, maxRequestsInflight, largest } = assert.fail()] = infos
  assert.ok(shown.includes(`"maxConnections":${maxConnections},"maxRequestsInflight":${maxRequestsInflight},`))
  assert.ok(Array.isArray(largest) && shown.includes(`"largest":["${largest[0]}",...]`), String(largest))
})

test('the pod of the chart has the memory that the gateway needs for thousands of connections', () => {
  const values = parse(readFileSync(join(ROOT, 'deploy/helm/portcullis/values.yaml'), 'utf8')) as {
    resources: { requests: { cpu: string }; limits: { memory: string } }
  }
  const { requests, limits } = values.resources
  const [, gib = ''] = /^(\d+)Gi$/.exec(limits.memory) ?? []
  const plan = planned(Number(requests.cpu), Number(gib) * GIB)
  assert.equal(plan.limitFrom, 'control group')
  assert.ok(plan.ceiling.bytes <= Number(gib) * GIB)
  assert.ok(plan.config.maxConnections >= 5000)
})
