// Objects that stopped KubeGateway, and objects made at random from the schema: whatever is sent, or stands in the store
// already, the process lives, and another cluster is served all the time.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { readStoreKey } from '../../../src/apiserver/io/store/key.ts'
import { openSqliteStore } from '../../../src/apiserver/io/store/store.ts'
import { UPSTREAM_CLUSTER_SPEC_SCHEMA } from '../../../src/gateway/api/upstream-cluster/schema.ts'
import { controlPaths } from '../../../src/gateway/io/listener/control-paths.ts'
import type { JsonSchema } from '../../../src/kit/api/json/json-schema.ts'
import { createCA } from '../../../src/pki/io/pki.ts'
import type { ControlResponse, Json } from '../../harness/clients/control-client.ts'
import {
  ClientConnections,
  EMBEDDED_FLAGS,
  type EmbeddedGateway,
  startEmbedded,
  UC_PATH,
} from '../../harness/gateways/embedded.ts'
import { base64, clientPair, clusterObject } from '../../harness/objects/objects.ts'
import { reply, type StubUpstream, startStub } from '../../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../../harness/wait.ts'

const SEED = 20_261_121
const FUZZED = 100
const GOOD = 'good.example.com'
const RESOURCE = 'upstreamclusters.proxy.kubegateway.io'
const clientCA = createCA({ commonName: 'clients' })

let stub: StubUpstream
let embedded: EmbeddedGateway
let clients: ClientConnections

before(async () => {
  stub = await startStub()
  stub.answer = (request) => {
    stub.seen.length = 0
    reply(request, 200, '{}')
  }
  embedded = await startEmbedded({ source: EMBEDDED_FLAGS, args: ['--access-log=false'] })
  clients = new ClientConnections(() => embedded.gateway, GOOD, clientPair(clientCA, 'alice'))
  await embedded.apply(clusterObject([stub], { name: GOOD, clientCA }))
  await clients.everywhereStatus(200)
})
after(async () => {
  clients?.close()
  await embedded?.stop()
  await stub?.stop()
})

/** Runs `action` while the good cluster is asked without pause; all of that must be served, by the threads there were. */
async function whileServing(action: () => Promise<void>): Promise<void> {
  const { pid } = embedded.gateway
  let done = false
  let rounds = 0
  const traffic = (async () => {
    for (; !done; rounds++) {
      for (const { status, body } of await clients.ask()) assert.equal(status, 200, body.toString())
    }
  })()
  try {
    await action()
    const enough = rounds + 3
    await Promise.race([waitFor('requests after it', () => rounds >= enough), traffic])
  } finally {
    done = true
  }
  await traffic
  assert.ok(embedded.gateway.running)
  assert.equal(embedded.gateway.pid, pid)
  const restarts = (await embedded.gateway.metrics()).matchAll(/^portcullis_thread_restarts_total\{.*\} (\d+)$/gm)
  for (const [line, count] of restarts) assert.equal(count, '0', line)
}

function manifest(name: string, spec: unknown): Json {
  return { apiVersion: 'proxy.kubegateway.io/v1alpha1', kind: 'UpstreamCluster', metadata: { name }, spec }
}

function goodSpec(): Record<string, unknown> {
  return { ...clusterObject([stub], { clientCA }).spec }
}

function limits(schema: object): object {
  return { flowControl: { flowControlSchemas: [{ name: 'limit', ...schema }] } }
}

/** shared/reference of KubeGateway, "Crashes": what is about objects; and what lies near to it. */
const CRASHES: readonly (readonly [string, () => object])[] = [
  ['insecure together with caData', () => ({ clientConfig: { insecure: true, caData: base64(stub.caPem) } })],
  ['an endpoint that is no URL', () => ({ servers: [{ endpoint: 'https://[::1' }] })],
  ['an endpoint with a space', () => ({ servers: [{ endpoint: 'https://a b:6443' }] })],
  ['an endpoint with half an escape', () => ({ servers: [{ endpoint: 'https://%zz:6443' }] })],
  ['an endpoint with a port that is none', () => ({ servers: [{ endpoint: 'https://127.0.0.1:99999' }] })],
  ['an endpoint without a host', () => ({ servers: [{ endpoint: 'https://:6443' }] })],
  ['globalCount without a global block', () => limits({ strategy: 'globalCount', tokenBucket: { qps: 1, burst: 1 } })],
  ['globalAllocate without any block', () => limits({ strategy: 'globalAllocate' })],
  ['a negative global maximum without a local one', () => limits({ globalMaxRequestsInflight: { max: -1 } })],
  [
    'the same with its strategy',
    () => limits({ strategy: 'globalCount', globalMaxRequestsInflight: { max: -2_147_483_648 } }),
  ],
  ['a certificate that is none', () => ({ secureServing: { certData: base64('x'), keyData: base64('y') } })],
  [
    'a Secret that is not there',
    () => ({ clientConfig: { insecure: true, bearerTokenRef: { namespace: 'default', name: 'no', key: 'no' } } }),
  ],
  ['no server at all', () => ({ servers: [] })],
  ['servers that are null', () => ({ servers: null })],
  ['rules that are null', () => ({ dispatchPolicies: [null] })],
  [
    'a policy with a limit that is not there',
    () => ({ dispatchPolicies: [{ rules: [{}], flowControlSchemaName: 'x' }] }),
  ],
]

const STRINGS = ['', '*', '-', '-*', '-a', 'a*', GOOD, '*.example.com', '127.0.0.1', '::1', '0.0.0.0/0', '999.1.1.1/99']
const MORE_STRINGS = ['__proto__', 'constructor', 'https://127.0.0.1:1', 'http://127.0.0.1:1', 'https://127.0.0.1:1/x']
const TIMES = [
  '2030-01-01T00:00:00Z',
  '2000-02-30T00:00:00Z',
  'tomorrow',
  '0000-00-00T00:00:00Z',
  '2020-01-01T00:00:00Z',
]
const BYTES = [
  '',
  'x',
  '====',
  base64('no PEM'),
  base64('-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n'),
]

/** Nothing that the schema would let pass. */
const junk = fc.constantFrom<unknown>(null, true, -1, 1.5, 1e308, '', 'x', [], [[]], {}, { a: { b: 1 } }, [null])

/** Values of this shape; `wild` ones now and then of another. */
function shapedBy(schema: JsonSchema, wild: boolean): fc.Arbitrary<unknown> {
  const plain = plainShapedBy(schema, wild)
  return wild ? fc.oneof({ weight: 25, arbitrary: plain }, { weight: 1, arbitrary: junk }) : plain
}

function plainShapedBy(schema: JsonSchema, wild: boolean): fc.Arbitrary<unknown> {
  const { properties, additionalProperties, items, required = [], minimum = -10, maximum = 2_147_483_647 } = schema
  switch (schema.type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
    case 'number':
      return fc.oneof(
        fc.constantFrom(minimum, maximum),
        fc.integer({ min: minimum, max: Math.min(maximum, Math.max(minimum, 1_000)) }),
      )
    case 'array':
      return items === undefined
        ? fc.constant([])
        : fc.array(shapedBy(items, wild), { minLength: schema.minItems ?? 0, maxLength: 3 })
    case 'object': {
      if (additionalProperties !== undefined) return fc.dictionary(fc.string(), shapedBy(additionalProperties, wild))
      const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, shapedBy(field, wild)] as const)
      return fc.record(Object.fromEntries(fields), { requiredKeys: wild ? [] : [...required], noNullPrototype: true })
    }
    case 'string':
      return stringOf(schema)
  }
}

function stringOf(schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (schema.format === 'byte') return fc.constantFrom(...BYTES)
  if (schema.format === 'date-time') return fc.constantFrom(...TIMES)
  const any = fc.string({ maxLength: Math.min(schema.maxLength ?? 20, 20), unit: 'binary' })
  const odd = fc.oneof(fc.constantFrom(...STRINGS, ...MORE_STRINGS), any)
  const isDuration = schema.pattern !== undefined && new RegExp(schema.pattern).test('10s')
  // There are so many of them that else hardly an object would be valid.
  return isDuration ? fc.oneof({ weight: 4, arbitrary: fc.constantFrom('10s', '5m', '1h') }, odd) : odd
}

/** Half of them of the right shape; of each half most are a good object but for one to three fields. */
function fuzzedSpecs(): unknown[] {
  const sample = (wild: boolean, seed: number): unknown[] =>
    fc.sample(shapedBy(UPSTREAM_CLUSTER_SPEC_SCHEMA, wild), { seed, numRuns: FUZZED / 2 })
  const all = [...sample(false, SEED), ...sample(true, SEED + 1)]
  return all.map((spec, i) => {
    const replaced = i % 4
    if (replaced === 0 || typeof spec !== 'object' || spec === null) return spec
    const fields = Object.entries(spec)
    const first = (i * 7) % Math.max(1, fields.length - replaced)
    return { ...goodSpec(), ...Object.fromEntries(fields.slice(first, first + replaced)) }
  })
}

/** What is wrong is said, with a code for it; never an internal error. */
function assertAnswered({ code, json, text }: ControlResponse, what: string): void {
  assert.ok([200, 201, 400, 409, 422].includes(code), `${what}: ${code} ${text}`)
  if (code < 300) return
  assert.equal(json.kind, 'Status', what)
  assert.notEqual(json.message, '', what)
}

async function remove(...names: string[]): Promise<void> {
  for (const name of names) await embedded.admin.delete(`${UC_PATH}/${name}`)
}

describe('sent to the API server', { concurrency: false }, () => {
  for (const [what, fields] of CRASHES) {
    test(what, async () => {
      const name = 'bad.example.com'
      await whileServing(async () => {
        const created = await embedded.admin.post(UC_PATH, manifest(name, { ...goodSpec(), ...fields() }))
        assertAnswered(created, what)
        // The Secret may still come, and without its block a limit is that of each replica.
        assert.equal(created.code, /^(a Secret|globalCount)/.test(what) ? 201 : 422, created.text)
        // As a change of an object that is served, too.
        await remove(name)
        const served = await embedded.admin.post(UC_PATH, manifest(name, goodSpec()))
        assert.equal(served.code, 201)
        assertAnswered(await embedded.admin.mergePatch(`${UC_PATH}/${name}`, { spec: fields() }), what)
        await remove(name)
      })
    })
  }

  test(`${FUZZED} objects made from the schema`, async () => {
    const codes = new Map<number, number>()
    await whileServing(async () => {
      for (const [i, spec] of fuzzedSpecs().entries()) {
        const name = `fuzzed-${i}.example.com`
        const validation = ['Strict', 'Warn', 'Ignore'][i % 3]
        const answer = await embedded.admin.post(`${UC_PATH}?fieldValidation=${validation}`, manifest(name, spec))
        assertAnswered(answer, JSON.stringify(spec))
        codes.set(answer.code, (codes.get(answer.code) ?? 0) + 1)
      }
    })
    // Some of the objects are accepted and some refused, or they are no good for this test.
    assert.ok((codes.get(201) ?? 0) >= 5, JSON.stringify([...codes]))
    assert.ok((codes.get(422) ?? 0) >= 20, JSON.stringify([...codes]))
    const { items } = (await embedded.admin.get(UC_PATH)).json
    await whileServing(() =>
      remove(...items.map(({ metadata }: Json) => metadata.name).filter((name: string) => name !== GOOD)),
    )
  })
})

test('in the store already: served is what can be', async () => {
  const shapes: unknown[] = [undefined, null, [], 'text', 7, {}, { servers: 'x' }, { servers: [null] }]
  const known = CRASHES.map(([, fields]) => ({ ...goodSpec(), ...fields() }))
  const specs = [...shapes, ...known, ...fuzzedSpecs()]
  await embedded.restart('SIGTERM', () => {
    const paths = controlPaths(embedded.dataDir)
    const store = openSqliteStore({ file: paths.store, key: readStoreKey(paths.storeKey) })
    for (const [i, spec] of specs.entries()) {
      const name = `stored-${i}.example.com`
      const metadata = { name, uid: `uid-${i}`, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' }
      const object = { ...manifest(name, spec), metadata }
      store.write([{ resource: RESOURCE, namespace: '', name, object, expected: 0 }])
    }
    store.close()
  })
  await clients.everywhereStatus(200)
  await whileServing(async () => {
    const list = await embedded.admin.get(UC_PATH)
    assert.equal(list.code, 200)
    assert.equal(list.json.items.length, specs.length + 1)
    // What KubeGateway died of, by name: an endpoint that is no URL.
    const path = `${UC_PATH}/stored-${shapes.length + 1}.example.com`
    const status = await waitFor('the status of a bad object', async () => {
      const { conditions = [] } = (await embedded.admin.get(path)).json.status ?? {}
      return conditions.find(({ type, reason }: Json) => type === 'Ready' && reason === 'Invalid')
    })
    assert.match(status.message, /spec\.servers\[0\]\.endpoint/)
    // It can be looked at, and thrown away.
    assert.match(await embedded.succeed(['get', 'uc']), new RegExp(`^${GOOD} +True`, 'm'))
    const [first = '', ...others] = specs.map((_, i) => `stored-${i}.example.com`)
    await embedded.succeed(['delete', 'uc', first])
    await remove(...others)
    assert.equal((await embedded.admin.get(UC_PATH)).json.items.length, 1)
  })
})
