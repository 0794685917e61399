// `replay` on the access logs of gateways that have run: what it says would happen is what happens.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { stringify } from 'yaml'
import { replay } from '../../src/cli/replay.ts'
import type { FlowControlSchema, UpstreamCluster } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import type { ReplaySummary } from '../../src/gateway/core/replay/summary.ts'
import { mergePatch } from '../../src/kube/core/objects/patch.ts'
import { createCA } from '../../src/pki/io/pki.ts'
import { h2Connect, h2Open, h2Request, h2Response } from '../harness/clients/h2-client.ts'
import { type GuardedGateway, startGuardedGateway } from '../harness/gateways/guarded-gateway.ts'
import { ALLOW_ALL, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { reply, type SeenRequest, type StubUpstream, startStub } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const clientCA = createCA({ commonName: 'clients of prod' })
const alice = clientPair(clientCA, 'alice', ['dev'])

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene {
  readonly stub: StubUpstream
  readonly gateway: GuardedGateway
  readonly object: UpstreamCluster
  readonly dir: string
}

async function setUp(limit?: Omit<FlowControlSchema, 'name'>): Promise<Scene> {
  const stub = await startStub()
  const object = objectOf(stub, limit)
  const gateway = await startGuardedGateway(object)
  const dir = mkdtempSync(join(tmpdir(), 'replay-'))
  cleanups.push(stub.stop, gateway.stop, () => rmSync(dir, { recursive: true }))
  return { stub, gateway, object, dir }
}

function objectOf(stub: StubUpstream, limit?: Omit<FlowControlSchema, 'name'>): UpstreamCluster {
  const limited = limit !== undefined && {
    flowControl: { flowControlSchemas: [{ name: 'the-limit', ...limit }] },
    dispatchPolicies: [{ ...ALLOW_ALL, flowControlSchemaName: 'the-limit' }],
  }
  return clusterObject([stub], { clientCA, spec: { logging: { mode: 'on' }, ...limited } })
}

function connect(gateway: GuardedGateway, certificate = alice) {
  const session = h2Connect({ port: gateway.port, serverName: 'prod.example.com', certificate })
  cleanups.push(() => session.destroy())
  return session
}

function writeConfig(dir: string, object: unknown): string {
  const file = join(dir, `config-${Math.random()}.yaml`)
  writeFileSync(file, stringify(object))
  return file
}

function writeLog({ dir, gateway }: Scene): string {
  const file = join(dir, `access-${Math.random()}.log`)
  writeFileSync(file, gateway.access.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

interface Answer extends ReplaySummary {
  readonly damaged: number
  readonly damagedLines: readonly { readonly line: number }[]
  readonly otherLines: number
}

async function replayed(
  log: string,
  config: string,
  more: { readonly compare?: string; readonly input?: AsyncIterable<string> } = {},
): Promise<{ readonly code: number; readonly answer: Answer }> {
  const parts: string[] = []
  const out = (part: string): void => void parts.push(part)
  const err = (part: string): void => assert.fail(part)
  const input = more.input ?? nothing()
  const code = await replay({ log, config, output: 'json', failOnChange: true, out, err, ...more, input })
  return { code, answer: JSON.parse(parts.join('')) }
}

async function* nothing(): AsyncGenerator<string> {}

/** Requests that upstream does not answer until it is told to. */
function hold(stub: StubUpstream): SeenRequest[] {
  const held: SeenRequest[] = []
  stub.answer = (request) => held.push(request)
  return held
}

/** `n` at once; the answers of those that reach upstream come when all have either reached it or been refused. */
async function flood({ stub, gateway }: Scene, n: number): Promise<number[]> {
  const held = hold(stub)
  const session = connect(gateway)
  const before = gateway.access.length
  const answers = Array.from({ length: n }, () =>
    h2Response(h2Open(session, [':path', '/api/v1/pods'], { endStream: true })),
  )
  await waitFor('all requests to be held or refused', () => held.length + gateway.access.length - before === n)
  for (const request of held) reply(request, 200, '{}')
  const codes = (await Promise.all(answers)).map(({ status }) => status)
  await waitFor('all lines of the log', () => gateway.access.length - before === n)
  return codes
}

test('an overload is refused as it was predicted, and the log of that agrees with what was decided', async () => {
  const free = await setUp()
  assert.deepEqual(new Set(await flood(free, 12)), new Set([200]))
  const limit = { maxRequestsInflight: { max: 5 } }
  const config = writeConfig(free.dir, objectOf(free.stub, limit))
  const log = writeLog(free)
  // The log does not say how full a limit was: totals only, and no change.
  const totals = await replayed(log, config)
  assert.deepEqual([totals.code, totals.answer.changed], [0, 0])
  assert.deepEqual(totals.answer.limits, [
    { cluster: 'prod.example.com', limit: 'the-limit', refused: 0, wouldRefuse: 7 },
  ])
  const predicted = await replayed(log, config, { compare: writeConfig(free.dir, free.object) })
  assert.equal(predicted.code, 2)
  const [change, ...others] = predicted.answer.changes
  assert.deepEqual(others, [])
  assert.equal(change?.was, 'forward')
  assert.equal(change?.wouldBe, 'refuse too-many-in-flight (the-limit)')
  assert.deepEqual(change?.users, [{ name: 'alice', requests: 7 }])
  assert.deepEqual(change?.resources, [{ name: 'list pods', requests: 7 }])
  assert.equal(change?.examples.length, 3)
  const ids = new Set(free.gateway.access.map((line) => line['auditID']))
  for (const { auditID } of change?.examples ?? []) assert.ok(ids.has(auditID))

  const limited = await setUp(limit)
  const codes = await flood(limited, 12)
  assert.equal(codes.filter((code) => code === 429).length, change?.requests)
  const again = await replayed(writeLog(limited), writeConfig(limited.dir, limited.object))
  assert.deepEqual([again.code, again.answer.changed, again.answer.requests], [0, 0, 12])
  // Without the limit, those that were refused would pass.
  const lifted = writeConfig(limited.dir, objectOf(limited.stub))
  const compared = await replayed(writeLog(limited), lifted, { compare: writeConfig(limited.dir, limited.object) })
  assert.equal(compared.answer.changes[0]?.was, 'refuse too-many-in-flight (the-limit)')
  assert.equal(compared.answer.changes[0]?.wouldBe, 'forward')
  assert.equal(compared.answer.changed, 7)
})

test('an unchanged configuration changes nothing, from any line of a log of clients above their rate on', async () => {
  const scene = await setUp({ tokenBucket: { qps: 5, burst: 5 } })
  const { stub, gateway, object, dir } = scene
  stub.answer = (request) => reply(request, 200, '{}')
  await h2Request(connect(gateway), [':path', '/api/v1/pods'])
  await waitFor('the line of the log', () => gateway.access.length === 1)
  // As a gateway decides at 7 requests/s, 5 tokens/s: the bucket is asked a little later than the head was complete.
  let tokens = 5
  let last = 0
  const lines = Array.from({ length: 300 }, (_, i) => {
    const at = i * 143
    const decided = at + ((i * 7919) % 23)
    tokens = Math.min(5, tokens + ((decided - last) * 5) / 1000)
    last = decided
    const passes = tokens >= 1
    if (passes) tokens--
    const time = new Date(Date.UTC(2026, 0, 1) + at).toISOString()
    const refused = { code: 429, reason: 'rate-limited', refusedBy: 'the-limit' }
    return JSON.stringify({ ...gateway.access[0], time, latencyMs: 1, ...(passes ? {} : refused) })
  })
  const config = writeConfig(dir, object)
  for (const first of [0, 1, 17, 100, 250, 299]) {
    const log = join(dir, `from-${first}.log`)
    writeFileSync(log, `${lines.slice(first).join('\n')}\n`)
    const { code, answer } = await replayed(log, config)
    assert.deepEqual([code, answer.changed, answer.shadowChanged, answer.requests], [0, 0, 0, 300 - first])
  }
  // It can fail: a rule that is evaluated before the limits.
  const denied = writeConfig(
    dir,
    mergePatch(JSON.parse(JSON.stringify(object)), { spec: { degrade: { mode: 'Freeze' } } }),
  )
  const log = join(dir, 'all.log')
  writeFileSync(log, `${lines.join('\n')}\n`)
  assert.ok((await replayed(log, denied)).answer.changed > 0)
})

test('damaged lines are named, a compressed log and standard input read the same', async () => {
  const scene = await setUp()
  await flood(scene, 4)
  const { gateway, dir, object } = scene
  const lines = gateway.access.map((line) => JSON.stringify(line))
  lines.splice(1, 0, '{"time":"2026-', 'x'.repeat(5 * 1024 * 1024), '', '{"level":"info","msg":"hello"}')
  lines.push('{"time":7,"method":"GET","target":"/","auditID":""}')
  const text = lines.join('\n')
  const [plain, zipped] = [join(dir, 'a.log'), join(dir, 'a.log.gz')]
  writeFileSync(plain, text)
  // As `cat a.gz b.gz` makes it.
  writeFileSync(zipped, Buffer.concat([gzipSync(text.slice(0, 700)), gzipSync(text.slice(700))]))
  const config = writeConfig(dir, object)
  async function* input(): AsyncGenerator<string> {
    yield* lines
  }
  const answers = [
    await replayed(plain, config),
    await replayed(zipped, config),
    await replayed('-', config, { input: input() }),
  ]
  for (const { code, answer } of answers) {
    const { requests, damaged, otherLines } = answer
    assert.deepEqual({ code, requests, damaged, otherLines }, { code: 0, requests: 4, damaged: 3, otherLines: 1 })
    assert.deepEqual(
      answer.damagedLines.map(({ line }) => line),
      [2, 3, 9],
    )
  }
  writeFileSync(zipped, gzipSync(text).subarray(0, 300))
  await assert.rejects(replayed(zipped, config), { name: 'UserError', message: /a.log.gz cannot be read beyond line/ })
})

test('what clients have chosen reaches no terminal as it is', async () => {
  const scene = await setUp()
  await flood(scene, 1)
  const [line] = scene.gateway.access
  const log = join(scene.dir, 'evil.log')
  writeFileSync(
    log,
    `${JSON.stringify({ ...line, user: 'mal\u001b[2Jlory\nx', target: '/api/v1/pods', auditID: '\u009b' })}\n`,
  )
  const config = writeConfig(scene.dir, scene.object)
  const parts: string[] = []
  const out = (part: string): void => void parts.push(part)
  const code = await replay({
    log,
    config,
    output: 'text',
    failOnChange: false,
    out,
    err: assert.fail,
    input: nothing(),
  })
  assert.equal(code, 0)
  const text = parts.join('')
  assert.match(text, /prod.example.com: forward -> refuse unauthorized: 1 requests/)
  assert.doesNotMatch(text, /[^\P{Cc}\n]/u)
  assert.match(text, /mal\\x1b\[2Jlory\\nx/)
})
