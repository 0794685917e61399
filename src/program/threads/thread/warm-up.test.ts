import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { waitFor } from '../../../../test/harness/wait.ts'
import { LONG_SLICE_MS, threadScheduler } from '../../../gateway/io/scheduling/thread-scheduler.ts'
import { writeAtTurnEnd } from '../../../gateway/io/socket/turn-outputs.ts'
import { type MetricsSums, ThreadMetrics } from '../../../gateway/metrics/metrics.ts'
import { MetricsRecorder } from '../../../gateway/metrics/recorder.ts'
import { ALONE } from '../../../gateway/state/thread-place.ts'
import { createCA, issueCertificate, type KeyPair } from '../../../pki/io/pki.ts'
import { loadConfig } from '../../../process/config/config.ts'
import { loadThreadSubjects } from '../../subjects/load.ts'
import type { ThreadData } from '../messages.ts'
import { createFilters } from './filters.ts'
import { WarmUp, type WarmUpDeps } from './warm-up.ts'

const PATIENT_MS = 60_000
const ca = createCA({ commonName: 'serving' })
const valid = issueCertificate(ca, { commonName: 'gateway', usage: 'server', dnsNames: ['gateway'] })

interface Scene {
  readonly parts: WarmUpDeps
  /** What the thread has counted, told and logged. */
  seen(): { readonly counted: unknown; readonly published: readonly string[]; readonly logged: readonly string[] }
}

async function setUp({ certPem: cert, keyPem: key }: KeyPair): Promise<Scene> {
  const config = loadConfig({ flags: {}, env: {}, readFile: () => '' })
  const memory = new Int32Array(new SharedArrayBuffer(64))
  const data: ThreadData = {
    ...{ place: ALONE, config, serving: { cert, key }, accessLog: true, auditLog: true, auditPolicy: undefined },
    ...{ linesTaken: memory, knownTokens: memory, connectionPlaces: memory },
  }
  const metrics = new MetricsRecorder()
  const published: string[] = []
  const logged: string[] = []
  const subjects = await loadThreadSubjects()
  const shared = {
    metrics,
    topics: { publish: (topic: { name: string }) => void published.push(topic.name), subscribe: () => () => undefined },
    questions: { ask: () => Promise.reject(new Error('nobody answers')), onLate: () => undefined },
  }
  const filters = createFilters(subjects.filters.map((create) => create(shared)))
  // What the filters have said when they were created.
  published.length = 0
  const parts = {
    data,
    filters,
    observers: subjects.observers,
    log: { debug: (line: string) => void logged.push(line) },
  }
  const counts = new ThreadMetrics()
  const counted = (): MetricsSums => {
    counts.latest(1, structuredClone(metrics.changes()))
    return counts.merged()
  }
  return { parts, seen: () => ({ counted: counted(), published, logged }) }
}

function assertNoSources(): void {
  for (const { held, sources } of threadScheduler.report()) assert.deepEqual({ held, sources }, { held: 0, sources: 0 })
}

test('clients with a certificate and with a token are served, and nothing of it is left in the thread', async () => {
  const { parts, seen } = await setUp(valid)
  const before = structuredClone(seen())
  const handles = process.getActiveResourcesInfo().filter((name) => name !== 'Immediate')
  assert.equal(await new WarmUp(parts).end(PATIENT_MS), 40)
  assert.deepEqual(seen(), before)
  assertNoSources()
  assert.deepEqual(threadScheduler.takeWaited(), { known: 0, unknown: 0 })
  assert.equal(threadScheduler.keptBytes, 0)
  const left = process.getActiveResourcesInfo().filter((name) => name !== 'Immediate')
  assert.deepEqual(left, handles, 'neither a socket nor a timer')
})

test('with an expired certificate only tokens are served', async () => {
  const past = { notBefore: new Date(Date.now() - 2_000_000), notAfter: new Date(Date.now() - 1_000_000) }
  const { parts, seen } = await setUp(issueCertificate(ca, { commonName: 'gateway', usage: 'server', ...past }))
  assert.equal(await new WarmUp(parts).end(PATIENT_MS), 20)
  assert.deepEqual(seen().logged, [])
})

const { privateKey: encrypted } = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'unknown' },
})

for (const [what, pair] of [
  ['neither certificate nor key', { certPem: 'none', keyPem: 'none' }],
  ['empty ones', { certPem: '', keyPem: '' }],
  ['an encrypted key', { certPem: valid.certPem, keyPem: encrypted }],
  ['the key of another certificate', { certPem: valid.certPem, keyPem: ca.keyPem }],
] as const) {
  test(`with ${what} it fails, which is one line in the log`, async () => {
    const { parts, seen } = await setUp(pair)
    assert.equal(await new WarmUp(parts).end(PATIENT_MS), 0)
    assert.equal(seen().logged.length, 1)
    assertNoSources()
  })
}

for (const [what, limits] of [
  ['least', { maxHeaderBytes: 4096, maxConcurrentStreams: 1, headerTimeoutMs: 1, idleTimeoutMs: 1 }],
  ['largest', { maxHeaderBytes: 64 * 1024 * 1024, maxConcurrentStreams: 100_000 }],
] as const) {
  test(`with the ${what} limits of clients it ends, and leaves nothing`, async () => {
    const { parts, seen } = await setUp(valid)
    const { data } = parts
    const warmUp = new WarmUp({ ...parts, data: { ...data, config: { ...data.config, ...limits } } })
    assert.equal(await warmUp.end(PATIENT_MS), 40)
    assert.deepEqual(seen().logged, [])
    assertNoSources()
  })
}

test('one that is late is ended, wherever it is, and leaves nothing either', async () => {
  for (const requests of [0, 1, 3, 10, 25]) {
    const { parts, seen } = await setUp(valid)
    const before = structuredClone(seen().counted)
    const warmUp = new WarmUp(parts)
    await waitFor('some requests', () => warmUp.served >= requests, { intervalMs: 0 })
    const served = await warmUp.end(0)
    assertNoSources()
    assert.equal(seen().logged.length, 1)
    await turns(20)
    // No request follows, and nothing is charged any more.
    assert.equal(warmUp.served, served)
    assertNoSources()
    assert.deepEqual(seen().counted, before)
  }
})

test('output that does not fit into a turn is charged before it has ended', async () => {
  const { parts } = await setUp(valid)
  const warmUp = new WarmUp(parts)
  await waitFor('some requests', () => warmUp.served >= 3, { intervalMs: 0 })
  const ended = warmUp.end(0)
  // Each takes a turn of the event loop, before the output of the connections that are closed.
  for (let i = 0; i < 10; i++)
    writeAtTurnEnd({ writeOut: () => busyFor(LONG_SLICE_MS), written: () => undefined }, false)
  await ended
  await turns(20)
  assertNoSources()
})

function busyFor(ms: number): void {
  for (const endMs = performance.now() + ms; performance.now() < endMs; );
}

async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await setImmediate()
}
