import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { after, before, test } from 'node:test'
import { parse } from 'yaml'
import { MemoryObjects } from '../../test/harness/objects/memory-objects.ts'
import { UPSTREAM_CLUSTERS } from '../gateway/api/upstream-cluster-kind.ts'
import { type ExplainOptions, explain } from './explain.ts'

const GOOD = `
apiVersion: proxy.kubegateway.io/v1alpha1
kind: UpstreamCluster
metadata: {name: prod}
spec:
  servers: [{endpoint: "https://10.0.0.1:6443"}]
  clientConfig: {insecure: true, bearerToken: dG9rZW4=}
  flowControl: {flowControlSchemas: [{name: slow, tokenBucket: {qps: 1, burst: 2}}]}
  dispatchPolicies:
    - rules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"], users: [alice]}]
      flowControlSchemaName: slow
`

const BROKEN = `
apiVersion: proxy.kubegateway.io/v1alpha1
kind: UpstreamCluster
metadata: {name: broken}
spec: {servers: [], dispatchPolicies: []}
`

let root = ''
let good = ''
let mixed = ''
let broken = ''

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'portcullis-explain-'))
  good = await directory({ 'prod.yaml': GOOD })
  mixed = await directory({ 'prod.yaml': GOOD, 'broken.yaml': BROKEN })
  broken = await directory({ 'broken.yaml': BROKEN })
})

after(() => rm(root, { recursive: true }))

async function directory(files: Record<string, string>): Promise<string> {
  const path = await mkdtemp(join(root, 'd-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text, { mode: 0o600 })
  return path
}

async function* lines(texts: Iterable<string>): AsyncGenerator<string> {
  yield* texts
}

async function run(options: Partial<ExplainOptions>): Promise<{ code: number; out: string; err: string }> {
  let out = ''
  let err = ''
  const code = await explain({
    ...(options.client === undefined && { configDir: good }),
    stdin: false,
    output: 'json',
    input: lines([]),
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
    now: () => 0,
    ...options,
  })
  return { code, out, err }
}

const REQUEST = { host: 'prod', method: 'GET', target: '/api/v1/pods', user: 'alice' }

test('one request, as JSON', async () => {
  const { code, out, err } = await run({ request: REQUEST })
  assert.deepEqual([code, err], [0, ''])
  const { decision, cluster, policy, rule, flowControl, endpoints } = JSON.parse(out)
  assert.deepEqual(
    { decision, cluster, policy, rule, flowControl, endpoints },
    {
      decision: 'forward',
      cluster: 'prod',
      policy: 0,
      rule: 0,
      flowControl: 'slow',
      endpoints: ['https://10.0.0.1:6443'],
    },
  )
})

test('the list of clusters is answered by the gateway, where no cluster is named', async () => {
  const request = { ...REQUEST, host: 'gateway', target: '/clusters' }
  const { decision, cluster } = JSON.parse((await run({ request })).out)
  assert.deepEqual([decision, cluster], ['answer', null])
  assert.match((await run({ request, output: 'text' })).out, /^decision +the gateway answers it/m)
  assert.equal(JSON.parse((await run({ request: { ...request, host: 'prod' } })).out).cluster, 'prod')
})

test('one request, for people: every value in one column', async () => {
  const { code, out } = await run({ request: { ...REQUEST, user: 'bob' }, output: 'text' })
  assert.equal(code, 0)
  assert.match(out, /^request +GET \/api\/v1\/pods\n/)
  assert.match(out, /^decision +refuse: 403 Forbidden$/m)
  assert.match(out, /^policy +none$/m)
  const columns = out
    .trimEnd()
    .split('\n')
    .map((line) => /^\S+ +/.exec(line)?.[0].length)
  assert.equal(new Set(columns).size, 1)
})

test('lines: one out for each in, in order; a malformed one is answered and makes the exit code 1', async () => {
  const ask = (user: string): string => JSON.stringify({ ...REQUEST, user, time: 'ignored' })
  const { code, out } = await run({
    stdin: true,
    input: lines([ask('alice'), '{', '', ask('bob'), '[]', ask('alice')]),
  })
  assert.equal(code, 1)
  const answers = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    answers.map((answer) => answer.decision ?? answer.error),
    ['forward', 'line 2: not JSON', 'refuse', 'line 5: not a JSON object', 'forward'],
  )
  assert.equal((await run({ stdin: true, input: lines([ask('bob')]) })).code, 0)
})

test('a long log keeps its order and leaves in few pieces', async () => {
  const count = 20_000
  const input = function* (): Generator<string> {
    for (let at = 0; at < count; at++) yield JSON.stringify({ ...REQUEST, target: `/api/v1/namespaces/n/pods/p${at}` })
  }
  let pieces = 0
  let text = ''
  const { code } = await run({
    stdin: true,
    input: lines(input()),
    out: (piece) => {
      pieces++
      text += piece
    },
  })
  assert.equal(code, 0)
  const names = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).requestInfo.name)
  assert.deepEqual(
    names,
    Array.from({ length: count }, (_, at) => `p${at}`),
  )
  assert.ok(pieces < count / 10)
})

test('lines that are there before the configuration is loaded are not lost', async () => {
  const text = `${JSON.stringify(REQUEST)}\n`.repeat(5)
  const { code, out } = await run({ stdin: true, input: createInterface({ input: Readable.from([text]) }) })
  assert.equal(code, 0)
  assert.equal(out.trimEnd().split('\n').length, 5)
})

test('an answer does not wait for the next line', async () => {
  const { promise: answered, resolve } = Promise.withResolvers<void>()
  const input = async function* (): AsyncGenerator<string> {
    yield JSON.stringify(REQUEST)
    await answered
  }
  const { code } = await run({ stdin: true, input: input(), out: () => resolve() })
  assert.equal(code, 0)
})

test('a broken object is reported, and the good ones answer', async () => {
  const { code, out, err } = await run({ configDir: mixed, request: REQUEST })
  assert.equal(code, 0)
  assert.equal(JSON.parse(out).cluster, 'prod')
  assert.match(err, /error: broken\.yaml.*spec\.servers/)
})

test('nothing that loads, or no request: one clear line and exit code 1', async () => {
  const none = await run({ configDir: broken, request: REQUEST })
  assert.deepEqual([none.code, none.out], [1, ''])
  assert.match(none.err, /no UpstreamCluster could be loaded/)
  const nothing = await run({})
  assert.deepEqual([nothing.code, nothing.out], [1, ''])
  assert.match(nothing.err, /no request given/)
})

test('the objects may be in an API server', async () => {
  const client = new MemoryObjects()
  client.put(UPSTREAM_CLUSTERS, parse(GOOD))
  const { code, out } = await run({
    client,
    request: { host: 'prod', method: 'GET', target: '/api/v1/pods', user: 'alice' },
  })
  assert.equal(code, 0)
  assert.equal(JSON.parse(out).flowControl, 'slow')
})

test('beside a cluster that is read from its members, which has no servers as the API server returns it', async () => {
  const client = new MemoryObjects()
  client.put(UPSTREAM_CLUSTERS, parse(GOOD))
  const spec = `{members: [{name: prod}], dispatchPolicies: [{rules: [{verbs: ["*"], apiGroups: ["*"], resources: ["*"]}]}]}`
  client.put(
    UPSTREAM_CLUSTERS,
    parse(GOOD.replace('name: prod', 'name: all').replace(/^spec:[\s\S]*/m, `spec: ${spec}`)),
  )
  for (const [host, user, flowControl] of [
    ['prod', 'alice', 'slow'],
    ['all', 'bob', ''],
  ] as const) {
    const { code, out, err } = await run({ client, request: { host, method: 'GET', target: '/api/v1/pods', user } })
    assert.equal(code, 0, err)
    assert.equal(JSON.parse(out).flowControl ?? '', flowControl)
  }
})
