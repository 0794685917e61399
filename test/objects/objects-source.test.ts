// UpstreamClusters and Secrets from an ObjectClient: what is delivered, and when. The client is a stand-in; real API servers
// are in test/e2e/control/kubernetes-source.test.ts.

import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { ResolvedCluster, SourceChange } from '../../src/gateway/api/resource-source.ts'
import { findConflicts } from '../../src/gateway/api/upstream-cluster/cluster-conflicts.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import { clusterStatus, conditionOf } from '../../src/gateway/core/status/cluster-status.ts'
import { ClusterObjects } from '../../src/gateway/io/sources/objects/clusters.ts'
import {
  createObjectsSource,
  type LastGoodClusters,
  type ObjectsSourceOptions,
} from '../../src/gateway/io/sources/objects/objects-source.ts'
import { settleClaims } from '../../src/gateway/io/sources/objects/settle-claims.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import type { Logger } from '../../src/kit/api/ports.ts'
import { UserError } from '../../src/kit/api/validation/field-errors.ts'
import type { PemChecks } from '../../src/kit/api/validation/pem-checks.ts'
import { SECRETS } from '../../src/kube/api/kinds/secret-kind.ts'
import type { FollowEvents, ObjectClient, ObjectName } from '../../src/kube/api/object-client.ts'
import type { ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { base64 } from '../harness/clusters/kubeconfig.ts'
import { waitFor } from '../harness/wait.ts'

const quiet = (): void => undefined

function logOf(lines: string[]): Logger {
  const write = (message: string): void => void lines.push(message)
  return { debug: quiet, info: write, warn: write, error: write }
}

interface Counted extends PemChecks {
  readonly checks: number
}

/** Every text is a good key and certificate, but one with "bad" in it. */
function countingPem(): Counted {
  let checks = 0
  const error = (text: string): string => {
    checks++
    return text.includes('bad') ? 'is bad' : ''
  }
  return {
    get checks() {
      return checks
    },
    certificatesError: error,
    privateKeyError: error,
    keyMatches: () => true,
  }
}

class FakeServer {
  readonly objects = new Map<string, JsonObject>()
  readonly listeners = new Map<string, FollowEvents>()
  readonly gets: string[] = []
  mayListSecrets = true
  /** Lists of Secrets that will be refused, first of all. */
  refusals = 0
  isAway = false
  #version = 100

  put(object: JsonObject): void {
    const key = this.#key(object)
    const before = this.objects.get(key)
    const metadata: Record<string, unknown> = Object(object['metadata'])
    const generation = (Number(Object(before?.['metadata']).generation) || 0) + 1
    const version = String(++this.#version)
    const stored = { ...object, metadata: { uid: key, generation, ...metadata, resourceVersion: version } }
    this.objects.set(key, stored)
    this.#tell(before === undefined ? 'ADDED' : 'MODIFIED', stored)
  }

  /** Only the status: generation stays. */
  putStatus(name: string, status: JsonObject): void {
    const before = this.objects.get(`UpstreamCluster /${name}`)
    const metadata: Record<string, unknown> = Object(before?.['metadata'])
    const stored = { ...before, status, metadata: { ...metadata, resourceVersion: String(++this.#version) } }
    this.objects.set(`UpstreamCluster /${name}`, stored)
    this.#tell('MODIFIED', stored)
  }

  remove(kind: string, name: string): void {
    const key = `${kind} ${name.includes('/') ? name : `/${name}`}`
    const before = this.objects.get(key)
    assert.ok(before !== undefined, key)
    this.objects.delete(key)
    const metadata: Record<string, unknown> = Object(before['metadata'])
    this.#tell('DELETED', { ...before, metadata: { ...metadata, resourceVersion: String(++this.#version) } })
  }

  all(kind: string): JsonObject[] {
    return [...this.objects.values()].filter((object) => object['kind'] === kind)
  }

  client(): ObjectClient {
    const refuse = (): Promise<never> => Promise.reject(new Error('not of this stand-in'))
    return {
      get: (kind, at) => this.#get(kind, at),
      list: async (kind) => {
        if (kind === SECRETS && (!this.mayListSecrets || this.refusals > 0)) {
          this.refusals--
          throw statusError('Forbidden', 'secrets is forbidden')
        }
        return { items: [], resourceVersion: '1' }
      },
      create: refuse,
      update: refuse,
      patch: refuse,
      delete: refuse,
      follow: (kind, _namespace, events) => {
        this.listeners.set(kind.kind, events)
        setImmediate(() => {
          if (this.listeners.get(kind.kind) !== events || this.isAway) return
          events.onReplace(this.all(kind.kind))
          events.onState(true, '')
        })
        return { stop: async () => void this.listeners.delete(kind.kind) }
      },
    }
  }

  async #get(kind: ResourceKind, { namespace, name }: ObjectName): Promise<JsonObject> {
    this.gets.push(`${kind.kind} ${namespace}/${name}`)
    if (this.isAway) throw new Error('no answer')
    const found = this.objects.get(`${kind.kind} ${namespace}/${name}`)
    if (found === undefined) throw statusError('NotFound', `secrets "${name}" not found`)
    return found
  }

  #key({ kind, metadata }: JsonObject): string {
    const { namespace = '', name }: Record<string, unknown> = Object(metadata)
    return `${String(kind)} ${String(namespace)}/${String(name)}`
  }

  #tell(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: JsonObject): void {
    if (!this.isAway) this.listeners.get(String(object['kind']))?.onChange(type, object)
  }
}

interface Wanted {
  hosts?: readonly string[]
  created?: string
  broken?: boolean
  /** Name of a Secret in namespace `ns`. */
  secret?: string
}

function cluster(
  name: string,
  { hosts = [], created = '2026-01-01T00:00:00Z', broken, secret }: Wanted = {},
): JsonObject {
  const reference = (key: string): object => ({ namespace: 'ns', name: secret, key })
  const serving = secret === undefined ? {} : { certRef: reference('tls.crt'), keyRef: reference('tls.key') }
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name, creationTimestamp: created },
    spec: {
      servers: [{ endpoint: broken === true ? 'no url' : 'http://192.0.2.1:1' }],
      secureServing: { serverNames: hosts, ...serving },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
    },
  }
}

const USABLE_BY = 'portcullis.io/usable-by'
const RELEASED = { annotations: { [USABLE_BY]: 'a,b,c,d' } }

function secret(name: string, text: string): JsonObject {
  const data = { 'tls.crt': base64(`cert ${text}`), 'tls.key': base64(`key ${text}`) }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'ns', ...RELEASED }, data }
}

async function started(t: TestContext, server: FakeServer, options: Partial<ObjectsSourceOptions> = {}) {
  const lines: string[] = []
  const pem = countingPem()
  const deliveries: SourceChange[] = []
  const source = createObjectsSource({
    client: server.client(),
    pem,
    log: logOf(lines),
    secretNamespaces: ['ns'],
    ...options,
  })
  t.after(() => source.stop())
  await source.start((change) => deliveries.push(change))
  return {
    source,
    lines,
    pem,
    deliveries,
    get last() {
      return deliveries.at(-1) ?? assert.fail('nothing was delivered')
    },
    /** The delivery after the ones that were there when this was called. */
    next: () => {
      const count = deliveries.length
      return waitFor('a delivery', () => deliveries[count], { intervalMs: 2 })
    },
  }
}

/** `name host,host` of what is in force. */
function hosts(clusters: ReadonlyMap<string, ResolvedCluster>): string[] {
  return [...clusters.values()]
    .map(({ object }) => `${object.metadata.name} ${object.spec.secureServing?.serverNames?.join(',')}`)
    .sort((a, b) => (a < b ? -1 : 1))
}

function messages({ problems }: SourceChange): string[] {
  return problems.map(({ cluster: name = '', path, message }) => `${name} ${path}: ${message}`)
}

test('the first delivery is complete; each change names what changed', async (t) => {
  const server = new FakeServer()
  server.put(secret('s', '1'))
  server.put(cluster('a', { hosts: ['x'], secret: 's' }))
  server.put(cluster('b', { hosts: ['y'] }))
  const { deliveries, next, pem } = await started(t, server)
  assert.equal(deliveries.length, 1)
  assert.deepEqual([hosts(deliveries[0]?.clusters ?? new Map()), deliveries[0]?.changed], [['a x', 'b y'], undefined])
  assert.equal(deliveries[0]?.clusters.get('a')?.object.spec.secureServing?.keyData, base64('key 1'))
  const first = next()
  server.put(cluster('b', { hosts: ['z'] }))
  const afterOne = await first
  assert.deepEqual([hosts(afterOne.clusters), [...(afterOne.changed ?? [])]], [['a x', 'b z'], ['b']])
  assert.equal(afterOne.clusters.get('a'), deliveries[0]?.clusters.get('a'))
  const second = next()
  const checks = pem.checks
  server.put(secret('s', '2'))
  assert.deepEqual([...((await second).changed ?? [])], ['a'])
  assert.ok(pem.checks > checks)
  const third = next()
  server.remove('UpstreamCluster', 'b')
  assert.deepEqual([hosts((await third).clusters), [...((await third).changed ?? [])]], [['a x'], ['b']])
})

test('a burst is one delivery, and a write of the status is none', async (t) => {
  const server = new FakeServer()
  const { deliveries, next, pem } = await started(t, server)
  const burst = next()
  for (let i = 0; i < 2000; i++) server.put(cluster(`c${i}`, { hosts: [`h${i}.example`] }))
  assert.equal((await burst).clusters.size, 2000)
  assert.equal(deliveries.length, 2)
  const checks = pem.checks
  for (let i = 0; i < 2000; i++) server.putStatus(`c${i}`, { observedGeneration: 1 })
  // A list of what is known already brings nothing either; what differs in it is delivered.
  server.listeners.get('UpstreamCluster')?.onReplace(server.all('UpstreamCluster'))
  const one = next()
  server.put(cluster('c7', { hosts: ['other.example'] }))
  assert.deepEqual([...((await one).changed ?? [])], ['c7'])
  assert.deepEqual([deliveries.length, pem.checks], [3, checks])
})

test('what was deleted while the follower was disconnected is removed', async (t) => {
  const server = new FakeServer()
  server.put(cluster('a'))
  server.put(cluster('b'))
  const { next, last } = await started(t, server)
  server.isAway = true
  server.remove('UpstreamCluster', 'a')
  server.put(cluster('c'))
  server.listeners.get('UpstreamCluster')?.onState(false, 'connection refused')
  const away = await next()
  assert.deepEqual([hosts(away.clusters), [...(away.changed ?? ['?'])]], [hosts(last.clusters), []])
  assert.match(
    messages(away)[0] ?? '',
    /cannot be watched; the previous configuration stays in force: connection refused/,
  )
  const back = next()
  server.listeners.get('UpstreamCluster')?.onReplace(server.all('UpstreamCluster'))
  server.listeners.get('UpstreamCluster')?.onState(true, '')
  assert.deepEqual([[...(await back).clusters.keys()].sort(), (await back).problems], [['b', 'c'], []])
  assert.deepEqual([...((await back).changed ?? [])].sort(), ['a', 'c'])
  const empty = next()
  server.listeners.get('UpstreamCluster')?.onReplace([])
  assert.equal((await empty).clusters.size, 0)
})

test('a broken cluster keeps its last good version, and says so once', async (t) => {
  const server = new FakeServer()
  server.put(cluster('a', { hosts: ['x'] }))
  server.put(cluster('new', { broken: true }))
  const { next, last, lines } = await started(t, server)
  assert.deepEqual(hosts(last.clusters), ['a x'])
  assert.deepEqual(
    last.problems.map((problem) => [problem.cluster, problem.path, problem.file, problem.line]),
    [['new', 'spec.servers[0].endpoint', '', 0]],
  )
  const broken = next()
  server.put(cluster('a', { hosts: ['z'], broken: true }))
  assert.deepEqual([hosts((await broken).clusters), (await broken).problems.length], [['a x'], 2])
  const fixed = next()
  server.put(cluster('a', { hosts: ['z'] }))
  assert.deepEqual([hosts((await fixed).clusters), (await fixed).problems.length], [['a z'], 1])
  assert.deepEqual(
    lines.filter((line) => line.startsWith('invalid')),
    ['invalid configuration; the cluster is not served', 'invalid configuration; the previous one stays in force'],
  )
})

test('a claim stays with its holder, else goes to the oldest object, and is passed on when free', async (t) => {
  const server = new FakeServer()
  server.put(cluster('a', { hosts: ['x'], created: '2026-01-02T00:00:00Z' }))
  server.put(cluster('b', { hosts: ['x'], created: '2026-01-01T00:00:00Z' }))
  const { next, last } = await started(t, server)
  assert.deepEqual(hosts(last.clusters), ['b x'])
  assert.deepEqual(messages(last), [
    'a spec.secureServing.serverNames[0]: UpstreamCluster "a" claims host name "x", which "b" has',
  ])
  const third = next()
  server.put(cluster('c', { hosts: ['x'], created: '2025-01-01T00:00:00Z' }))
  assert.deepEqual([hosts((await third).clusters), (await third).problems.length], [['b x'], 2])
  const gone = next()
  server.remove('UpstreamCluster', 'b')
  assert.deepEqual(hosts((await gone).clusters), ['c x'])
  assert.deepEqual([...((await gone).changed ?? [])].sort(), ['b', 'c'])
})

test('a Secret that is missing, appears, breaks and goes: the cluster follows it as far as it is good', async (t) => {
  const server = new FakeServer()
  server.put(cluster('a', { secret: 's' }))
  server.put(cluster('b'))
  const { next, last, pem } = await started(t, server)
  assert.deepEqual([...last.clusters.keys()], ['b'])
  assert.match(messages(last)[0] ?? '', /^a spec.secureServing.keyRef: Secret ns\/s does not exist$/)
  const appears = next()
  server.put(secret('s', 'good'))
  assert.deepEqual([[...(await appears).clusters.keys()].sort(), (await appears).problems], [['a', 'b'], []])
  const breaks = next()
  server.put(secret('s', 'bad'))
  assert.equal((await breaks).clusters.get('a')?.object.spec.secureServing?.keyData, base64('key good'))
  assert.match(messages(await breaks)[0] ?? '', /^a spec.secureServing.\w+Ref: is bad$/)
  const gone = next()
  server.remove('Secret', 'ns/s')
  assert.equal((await gone).clusters.get('a')?.object.spec.secureServing?.keyData, base64('key good'))
  const checks = pem.checks
  const other = next()
  server.put(secret('unrelated', 'bad'))
  server.put(secret('t', 'more'))
  server.put(cluster('a', { secret: 't' }))
  assert.equal((await other).clusters.get('a')?.object.spec.secureServing?.keyData, base64('key more'))
  assert.ok(pem.checks > checks)
  // `t` was there before an UpstreamCluster named it, and is read then.
  assert.ok(server.gets.includes('Secret ns/t'))
  assert.ok(!server.gets.includes('Secret ns/unrelated'))
})

/** Names token `t` of Secret ns/s, for servers over TLS. */
function tokenCluster(endpoint: string, spec: JsonObject = {}): JsonObject {
  const reference = { namespace: 'ns', name: 's', key: 't' }
  const base = cluster('a')
  const clientConfig = { insecure: true, bearerTokenRef: reference }
  return { ...base, spec: { ...Object(base['spec']), servers: [{ endpoint }], clientConfig, ...spec } }
}

function tokenSecret(token: string, metadata: JsonObject = {}): JsonObject {
  return {
    ...secret('s', 'x'),
    metadata: { name: 's', namespace: 'ns', ...RELEASED, ...metadata },
    data: { t: base64(token) },
  }
}

test('with a broken Secret the degrade switch and revocations still work: the bytes in force stay', async (t) => {
  const server = new FakeServer()
  const url = 'https://203.0.113.1'
  server.put(tokenSecret('good'))
  server.put(tokenCluster(url))
  const source = await started(t, server)
  const now = () => source.last.clusters.get('a')?.object
  server.put(tokenSecret('two\nlines'))
  await waitFor('the problem', () => messages(source.last).length === 1)
  const measures = { degrade: { mode: 'Freeze' }, authentication: { revoked: [{ user: 'eve' }] } }
  server.put(tokenCluster(url, measures))
  await waitFor('the freeze', () => now()?.spec.degrade?.mode === 'Freeze')
  assert.deepEqual(now()?.spec.authentication?.revoked, [{ user: 'eve' }])
  assert.equal(now()?.spec.clientConfig?.bearerToken, base64('good'))
  assert.equal(now()?.metadata.generation, 2)
  // It is still said, as an error: Ready stays False.
  assert.match(messages(source.last)[0] ?? '', /^a spec\.clientConfig\.bearerTokenRef: holds characters/)
  assert.equal(source.last.problems[0]?.severity, 'error')
  // The same where it is gone, and taken back.
  server.remove('Secret', 'ns/s')
  await waitFor('its absence', () => /does not exist/.test(messages(source.last)[0] ?? ''))
  server.put(tokenCluster(url))
  await waitFor('the end of the freeze', () => now()?.metadata.generation === 3)
  assert.equal(now()?.spec.degrade, undefined)
  // What is wrong with the object itself stays out: a token in clear, a reference that was never good, a mode that is none.
  const wrong = [
    tokenCluster('http://203.0.113.1:8080', measures),
    tokenCluster(url, { ...measures, degrade: { mode: 'freeze' } }),
    tokenCluster(url, {
      ...measures,
      clientConfig: { insecure: true, bearerTokenRef: { namespace: 'ns', name: 's', key: 'other' } },
    }),
  ]
  for (const object of wrong) {
    const next = source.next()
    server.put(object)
    await next
    assert.equal(now()?.metadata.generation, 3)
  }
  const fixed = source.next()
  server.put(tokenCluster(url, measures))
  assert.equal((await fixed).clusters.get('a')?.object.spec.degrade?.mode, 'Freeze')
  server.put(tokenSecret('better'))
  await waitFor('the new token', () => now()?.spec.clientConfig?.bearerToken === base64('better'))
  assert.deepEqual(source.last.problems, [])
})

test('where Secrets may not be listed, those named are read one by one, again and again', async (t) => {
  const server = new FakeServer()
  server.mayListSecrets = false
  server.put(secret('s', '1'))
  server.put(secret('unrelated', '1'))
  server.put(cluster('a', { secret: 's' }))
  const { next, last, lines } = await started(t, server, { refreshMs: 50 })
  assert.equal(last.clusters.get('a')?.object.spec.secureServing?.keyData, base64('key 1'))
  assert.ok(lines.includes('Secrets cannot be watched; changes are seen later'))
  const changed = next()
  server.put(secret('s', '2'))
  assert.equal((await changed).clusters.get('a')?.object.spec.secureServing?.keyData, base64('key 2'))
  assert.ok(!server.gets.includes('Secret ns/unrelated'))
  // Later it is allowed.
  server.mayListSecrets = true
  await waitFor('the watch', () => server.listeners.has('Secret'))
})

test('the first refusals of an API server that comes back are not final: Secrets are watched again, not read once a minute', async (t) => {
  const server = new FakeServer()
  server.put(secret('s', '1'))
  server.put(cluster('a', { secret: 's' }))
  const { next, lines } = await started(t, server, { refreshMs: 60_000 })
  const watch = server.listeners.get('Secret')
  assert.ok(watch !== undefined)
  // RBAC caches that are cold: each question is refused, for a moment.
  server.refusals = 2
  watch.onState(false, 'connection refused')
  await waitFor('another watch', () => server.listeners.has('Secret') && server.listeners.get('Secret') !== watch)
  assert.equal(server.refusals, 0)
  const changed = next()
  server.put(secret('s', '2'))
  assert.equal((await changed).clusters.get('a')?.object.spec.secureServing?.keyData, base64('key 2'))
  assert.ok(!lines.includes('Secrets cannot be watched; changes are seen later'))
})

test('a file cannot be named, and what an object has under __proto__ does no harm', async (t) => {
  const server = new FakeServer()
  const named = cluster('a')
  const spec: Record<string, unknown> = Object(named['spec'])
  server.put({
    ...named,
    spec: { ...spec, secureServing: { certRef: { file: '/etc/passwd' }, keyRef: { file: 'k' } } },
  })
  server.put(cluster('b'))
  const evil: JsonObject = JSON.parse(
    '{"kind":"UpstreamCluster","metadata":{"name":"__proto__","__proto__":{"x":1}},"spec":7}',
  )
  server.put(evil)
  server.put({ kind: 'UpstreamCluster', metadata: { name: 'constructor' }, spec: { secureServing: { keyRef: [] } } })
  const { last } = await started(t, server)
  assert.deepEqual([...last.clusters.keys()], ['b'])
  assert.ok(last.problems.some(({ cluster: name, path }) => name === 'a' && path.includes('certRef')))
  for (const name of ['__proto__', 'constructor']) assert.ok(last.problems.some((problem) => problem.cluster === name))
})

test('a start without a server fails and says why; one that waits for a Secret goes on without it', async () => {
  const server = new FakeServer()
  server.isAway = true
  const options = { pem: countingPem(), log: logOf([]), secretNamespaces: ['ns'], startTimeoutMs: 100 }
  const common = { client: server.client(), ...options }
  const source = createObjectsSource(common)
  const failing = source.start(() => assert.fail('delivered'))
  server.listeners.get('UpstreamCluster')?.onState(false, 'no answer from https://k: connection refused')
  await assert.rejects(failing, (error) => {
    assert.ok(error instanceof UserError)
    assert.match(error.message, /^no UpstreamClusters within 0.1 s: no answer from https:\/\/k: connection refused$/)
    assert.match(error.fix, /a first start needs the API server/)
    return true
  })
  assert.equal(server.listeners.size, 0)
  const slow = new FakeServer()
  slow.put(cluster('a', { secret: 's' }))
  slow.put(cluster('b'))
  const client = slow.client()
  const follow: ObjectClient['follow'] = (kind, namespace, events) =>
    kind === SECRETS ? { stop: async () => undefined } : client.follow(kind, namespace, events)
  const deliveries: SourceChange[] = []
  const patient = createObjectsSource({ ...common, client: { ...client, follow } })
  await patient.start((change) => deliveries.push(change))
  assert.deepEqual([...(deliveries[0]?.clusters.keys() ?? [])], ['b'])
  assert.match(messages(deliveries[0] ?? assert.fail())[0] ?? '', /^a .*: waits for Secret ns\/s/)
  await patient.stop()
})

test('incremental and from the beginning are the same, in any order of events', () => {
  const present = { state: 'present', message: '', data: new Map(), labelled: false } as const
  const event = fc.record({
    name: fc.constantFrom('p', 'q', 'r', 's'),
    hosts: fc.option(fc.subarray(['x', 'y', 'z']), { nil: undefined }),
    created: fc.constantFrom('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'),
    gone: fc.boolean(),
    settles: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(event, { maxLength: 14 }), (events) => {
      const secrets = { get: () => present, retain: quiet, release: quiet }
      const table = new ClusterObjects({ secrets, pem: countingPem() })
      const objects = new Map<string, { good: boolean; object: JsonObject }>()
      let inForce = new Map<string, string>()
      for (const [index, { name, hosts: given, created, gone, settles }] of events.entries()) {
        const object = cluster(name, { hosts: given ?? [], created, broken: given === undefined })
        const metadata: Record<string, unknown> = Object(object['metadata'])
        if (gone) objects.delete(name)
        else objects.set(name, { good: given !== undefined, object })
        if (gone) table.remove(name)
        else table.put({ ...object, metadata: { ...metadata, resourceVersion: String(index) } })
        if (!settles) continue
        while (table.checkNext());
        const { changed } = table.settle()
        const next = decideAll(objects, inForce)
        const now = new Map([...table.inForce].map(([key, { object: one }]) => [key, claimed(one)]))
        assert.deepEqual(new Map([...now].sort()), new Map([...next].sort()))
        for (const key of new Set([...next.keys(), ...inForce.keys()])) {
          if (next.get(key) !== inForce.get(key)) assert.ok(changed.has(key), `${key} changed unsaid`)
        }
        const versions = [...table.inForce.values()].map(({ object: one }) => one)
        assert.deepEqual(
          findConflicts(versions, () => false),
          [],
        )
        inForce = next
      }
    }),
    { numRuns: 2000 },
  )
})

function claimed(object: unknown): string {
  return String(Object(object).spec.secureServing?.serverNames ?? '')
}

/** The same rules over everything at once; what is in force is known by its hosts. */
function decideAll(
  objects: ReadonlyMap<string, { good: boolean; object: JsonObject }>,
  before: ReadonlyMap<string, string>,
): Map<string, string> {
  const versionOf = (name: string, claims: string): ResolvedCluster => {
    const object = cluster(name, { hosts: claims === '' ? [] : claims.split(',') })
    return { object: object as unknown as ResolvedCluster['object'], revision: claims }
  }
  const age = ([name, { object }]: [string, { object: JsonObject }]): string =>
    `${String(Object(object['metadata']).creationTimestamp)} ${name}`
  const last = new Map([...before].map(([name, claims]) => [name, versionOf(name, claims)]))
  const wanted = new Map<string, ResolvedCluster>()
  for (const [name, { good, object }] of [...objects].sort((a, b) => (age(a) < age(b) ? -1 : 1))) {
    const version = good ? versionOf(name, claimed(object)) : last.get(name)
    if (version !== undefined) wanted.set(name, version)
  }
  settleClaims(wanted, last, quiet)
  return new Map([...wanted].map(([name, { object }]) => [name, claimed(object)]))
}

test('one change among two thousand is looked at alone', () => {
  const present = { state: 'present', message: '', data: new Map(), labelled: false } as const
  const asked: string[] = []
  const secrets = {
    get: (name: string) => {
      asked.push(name)
      return present
    },
    retain: quiet,
    release: quiet,
  }
  const table = new ClusterObjects({ secrets, pem: countingPem() })
  table.replace(Array.from({ length: 2000 }, (_, i) => cluster(`c${i}`, { hosts: [`h${i}`], secret: `s${i}` })))
  while (table.checkNext());
  table.settle()
  asked.length = 0
  table.put(cluster('c5', { hosts: ['new'], secret: 's5' }))
  while (table.checkNext());
  table.settle()
  assert.ok(asked.length > 0 && asked.every((name) => name === 'ns/s5'))
  assert.equal(UPSTREAM_CLUSTERS.plural, 'upstreamclusters')
})

describe('Secrets of other namespaces', () => {
  const theirs = (labels: Record<string, string> = {}): JsonObject => ({
    ...secret('s', 'x'),
    metadata: { name: 's', namespace: 'kube-system', labels },
    data: { token: base64('token') },
  })
  const naming = (name: string): JsonObject => ({
    ...cluster(name),
    spec: {
      ...Object(cluster(name)['spec']),
      servers: [{ endpoint: 'https://203.0.113.1' }],
      clientConfig: { insecure: true, bearerTokenRef: { namespace: 'kube-system', name: 's', key: 'token' } },
    },
  })

  test('are not used, and their existence is not revealed', async (t) => {
    const server = new FakeServer()
    server.put(naming('a'))
    const source = await started(t, server, { refreshMs: 20 })
    await waitFor('a problem', () => messages(source.last).length === 1)
    const absent = messages(source.last)
    server.put(theirs())
    const read = server.gets.length
    await waitFor('two more reads', () => server.gets.length >= read + 2)
    assert.deepEqual(messages(source.last), absent)
    assert.equal(source.last.clusters.size, 0)
    const [problem] = source.last.problems
    assert.match(problem?.message ?? '', /^Secret kube-system\/s may not be used: namespace kube-system is not one of /)
    assert.match(
      problem?.message ?? '',
      /--secret-namespace \(ns\), .* annotation portcullis\.io\/usable-by that names UpstreamCluster a /,
    )
    assert.match(problem?.fix ?? '', /kubectl annotate secret s -n kube-system portcullis\.io\/usable-by=a;/)
    assert.equal(server.listeners.has('Secret'), false, 'such a namespace is not watched')
  })

  test("in the gateway's own namespace are used, but not its own", async (t) => {
    const server = new FakeServer()
    for (const name of ['portcullis-serving-ca', 'portcullis-control-ca', 'prod']) {
      const labels = { 'portcullis.io/usable-by-gateway': 'true' }
      const annotations = { [USABLE_BY]: name }
      const metadata = { name, namespace: 'portcullis-system', labels, annotations }
      server.put({ ...secret('s', 'x'), metadata, data: { token: base64('token') } })
      const bearerTokenRef = { namespace: 'portcullis-system', name, key: 'token' }
      const spec = { ...Object(naming(name)['spec']), clientConfig: { insecure: true, bearerTokenRef } }
      server.put({ ...naming(name), spec })
    }
    const source = await started(t, server, { secretNamespaces: ['portcullis-system'] })
    assert.deepEqual([...source.last.clusters.keys()], ['prod'])
    assert.deepEqual(
      messages(source.last).map((text) => /may not be used: it is the gateway's own/.test(text)),
      [true, true],
    )
  })

  test('are used once their owner has labelled them', async (t) => {
    const server = new FakeServer()
    server.put(naming('a'))
    server.put(theirs({ 'portcullis.io/usable-by-gateway': 'yes' }))
    const source = await started(t, server, { refreshMs: 20 })
    await waitFor('a problem', () => messages(source.last).length === 1)
    server.put(theirs({ 'portcullis.io/usable-by-gateway': 'true' }))
    await waitFor('the cluster', () => source.last.clusters.has('a'))
    assert.deepEqual(messages(source.last), [
      'a spec.clientConfig.bearerTokenRef: Secret kube-system/s is released to all UpstreamClusters, which ends with the next minor version',
    ])
    assert.equal(source.last.problems[0]?.severity, 'warning')
  })

  test('are used by those UpstreamClusters that their owner names, and by no others', async (t) => {
    const server = new FakeServer()
    const release = (names: string): void => {
      const made = theirs({ 'portcullis.io/usable-by-gateway': 'true' })
      server.put({ ...made, metadata: { ...Object(made['metadata']), annotations: { [USABLE_BY]: names } } })
    }
    server.put(naming('a'))
    server.put(naming('mallory'))
    release('other,a')
    const source = await started(t, server, { refreshMs: 20 })
    await waitFor('the cluster', () => source.last.clusters.has('a'))
    assert.deepEqual([...source.last.clusters.keys()], ['a'])
    const [problem = '', ...more] = messages(source.last)
    assert.match(problem, /Secret kube-system\/s may not be used: .* names UpstreamCluster mallory can be read there$/)
    assert.deepEqual(more, [])
  })

  test('are read no more when nothing names them', async (t) => {
    const server = new FakeServer()
    server.put(naming('a'))
    server.put(cluster('b'))
    const source = await started(t, server, { refreshMs: 20 })
    await waitFor('reads', () => server.gets.length > 2)
    server.remove('UpstreamCluster', '/a')
    await waitFor('its end', () => source.last.problems.length === 0)
    const read = server.gets.length
    server.put(cluster('c', { secret: 'own' }))
    server.put(secret('own', 'x'))
    await waitFor('another one', () => source.deliveries.length > 2)
    assert.ok(server.gets.length <= read + 1)
  })
})

describe('the release of a Secret', () => {
  const url = 'https://203.0.113.1'
  const named = (name: string, endpoint = url, namespace = 'ns'): JsonObject => ({
    ...cluster(name),
    spec: {
      ...Object(cluster(name)['spec']),
      servers: [{ endpoint }],
      clientConfig: { insecure: true, bearerTokenRef: { namespace, name: 's', key: 't' } },
    },
  })
  const to = (usableBy: string | undefined, text = 'good'): JsonObject =>
    tokenSecret(text, { annotations: usableBy === undefined ? {} : { [USABLE_BY]: usableBy } })
  const elsewhere = (usableBy: string | undefined): JsonObject => {
    const made = to(usableBy)
    return { ...made, metadata: { ...Object(made['metadata']), namespace: 'theirs' } }
  }

  test('to all is said once for each Secret, in the log too, until its owner names the clusters', async (t) => {
    const server = new FakeServer()
    const lines: [string, Readonly<Record<string, unknown>> | undefined][] = []
    const write: Logger['warn'] = (message, fields) => void lines.push([message, fields])
    const log = { debug: quiet, info: write, warn: write, error: write }
    server.mayListSecrets = false
    server.put(to(undefined))
    server.put(named('a'))
    server.put(named('b'))
    const source = await started(t, server, { log, refreshMs: 10 })
    const told = (): (typeof lines)[number][] => lines.filter(([message]) => message.includes('released to all'))
    const problem = (name: string): string =>
      `${name} spec.clientConfig.bearerTokenRef: Secret ns/s is released to all UpstreamClusters, which ends with the next minor version`
    assert.deepEqual(messages(source.last), [problem('a'), problem('b')])
    assert.match(source.last.problems[1]?.fix ?? '', /portcullis\.io\/usable-by=b$/)
    const [line, ...more] = told()
    assert.deepEqual(more, [])
    assert.equal(line?.[0], 'Secret ns/s is released to all UpstreamClusters, which ends with the next minor version')
    assert.deepEqual(line?.[1], {
      clusters: ['a', 'b'],
      fix: 'name all that use it: kubectl annotate secret s -n ns portcullis.io/usable-by=a,b',
    })
    // Neither reads of it, nor another token in it, nor another cluster, nor writes of a cluster say it again.
    const read = server.gets.length
    await waitFor('more reads', () => server.gets.length >= read + 3)
    server.put(to(undefined, 'other'))
    server.put(named('c'))
    server.put(named('a', 'https://203.0.113.2'))
    await waitFor(
      'all of it',
      () => source.last.clusters.get('c')?.object.spec.clientConfig?.bearerToken === base64('other'),
    )
    assert.equal(told().length, 1)
    server.put(to('a,b,c'))
    await waitFor('no problem', () => source.last.problems.length === 0)
    assert.deepEqual([...source.last.clusters.keys()].sort(), ['a', 'b', 'c'])
    server.put(to(undefined))
    await waitFor('the problems', () => source.last.problems.length === 3)
    assert.deepEqual(told().at(-1)?.[1]?.['clusters'], ['a', 'b', 'c'])
    assert.equal(told().length, 2)
    assert.deepEqual(
      lines.filter(([message]) => message === 'configuration warning'),
      [],
    )
  })

  for (const [what, released, withheld] of [
    ['names others only', to('a'), to('b')],
    ['names no user', to('a'), to('')],
    ['goes from all to others', to(undefined), to('b')],
    ['is taken away in a namespace of others', elsewhere('a'), elsewhere(undefined)],
  ] as const) {
    test(`that ${what} takes the cluster out of force, and so nothing goes on with its bytes`, async (t) => {
      const server = new FakeServer()
      const { namespace } = Object(released['metadata'])
      server.put(released)
      server.put(named('a', url, namespace))
      const source = await started(t, server, { refreshMs: 10 })
      assert.deepEqual([...source.last.clusters.keys()], ['a'])
      server.put(withheld)
      await waitFor('the end of the cluster', () => !source.last.clusters.has('a'))
      assert.ok(source.last.changed?.has('a'))
      assert.match(messages(source.last).join(), /^a spec\.clientConfig\.bearerTokenRef: Secret \w+\/s may not be used/)
      assert.equal(source.last.problems[0]?.severity, 'error')
      // Other servers for the same token, and then a Secret that is gone: as if the gateway had never read it.
      const changed = source.next()
      server.put(named('a', 'https://203.0.113.66', namespace))
      server.put(cluster('witness'))
      await changed
      await waitFor('the witness', () => source.last.clusters.has('witness'))
      server.remove('Secret', `${namespace}/s`)
      server.put(cluster('witness', { hosts: ['x'] }))
      await waitFor('the witness', () => hosts(source.last.clusters).join().includes('witness x'))
      assert.deepEqual([...source.last.clusters.keys()], ['witness'])
      server.put(released)
      await waitFor('the cluster', () => source.last.clusters.has('a'))
      assert.equal(source.last.clusters.get('a')?.object.spec.servers[0]?.endpoint, 'https://203.0.113.66')
    })
  }

  test('that is taken away ends what is in force, even where the object has come to name another Secret', async (t) => {
    const server = new FakeServer()
    server.put(to('a'))
    server.put(named('a'))
    const source = await started(t, server, { refreshMs: 10 })
    const { clientConfig: own, ...others } = Object(named('a')['spec'])
    const clientConfig = { ...own, bearerTokenRef: { namespace: 'ns', name: 'nothing', key: 't' } }
    server.put({ ...named('a'), spec: { ...others, clientConfig } })
    await waitFor('the problem', () => /Secret ns\/nothing does not exist/.test(messages(source.last).join()))
    assert.deepEqual([...source.last.clusters.keys()], ['a'])
    server.put(to('b'))
    await waitFor('its end', () => source.last.clusters.size === 0)
  })

  test('to others is not learnt by naming the Secret: what is in force with another one stays, there or not', async (t) => {
    const outcomes = await Promise.all(
      [elsewhere('b'), elsewhere(undefined), undefined].map(async (foreign) => {
        const server = new FakeServer()
        server.put(to('a'))
        if (foreign !== undefined) server.put(foreign)
        server.put(named('a'))
        const source = await started(t, server, { refreshMs: 10 })
        server.put(named('a', 'https://203.0.113.66', 'theirs'))
        await waitFor('the problem', () => /may not be used/.test(messages(source.last).join()))
        const { clusters, problems } = source.last
        return { endpoint: clusters.get('a')?.object.spec.servers[0]?.endpoint, problems }
      }),
    )
    assert.equal(outcomes[0]?.endpoint, url)
    assert.deepEqual(outcomes[1], outcomes[0])
    assert.deepEqual(outcomes[2], outcomes[0])
  })

  test('that was taken away while the gateway was down ends what was restored', async (t) => {
    const server = new FakeServer()
    server.put(to('a'))
    server.put(named('a'))
    const first = await started(t, server)
    const restored = new Map(first.last.clusters)
    await first.source.stop()
    server.put(to('b'))
    server.isAway = true
    const lastGood: LastGoodClusters = { waitMs: 1, restore: () => restored, keep: quiet, current: quiet }
    const source = await started(t, server, { lastGood })
    assert.deepEqual([...source.last.clusters.keys()], ['a'])
    server.isAway = false
    for (const [kind, events] of server.listeners) {
      events.onReplace(server.all(kind))
      events.onState(true, '')
    }
    await waitFor('its end', () => source.last.clusters.size === 0)
    assert.match(messages(source.last).join(), /its annotation portcullis\.io\/usable-by does not name it$/)
  })
})

test('a cluster that waits for a Secret says so in its problems, and nothing in the log', async (t) => {
  const server = new FakeServer()
  server.put(cluster('b'))
  const client = server.client()
  let secrets: FollowEvents | undefined
  const follow: ObjectClient['follow'] = (kind, namespace, events) => {
    if (kind !== SECRETS) return client.follow(kind, namespace, events)
    secrets = events
    return { stop: async () => undefined }
  }
  const source = await started(t, server, { client: { ...client, follow } })
  server.put(cluster('a', { secret: 's' }))
  await waitFor('the problem', () => messages(source.last).some((text) => text.includes('waits for Secret ns/s')))
  secrets?.onReplace([secret('s', 'x')])
  await waitFor('the cluster', () => source.last.clusters.has('a'))
  assert.deepEqual(messages(source.last), [])
  assert.deepEqual(
    source.lines.filter((line) => /configuration/.test(line)),
    [],
  )
})

test('fields that the API server dropped are still reported, from what kubectl applied', async (t) => {
  const server = new FakeServer()
  const applied = cluster('a')
  const manifest = { ...applied, spec: { ...Object(applied['spec']), upstreamSubsets: [], degrade: { mod: 'Freeze' } } }
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': JSON.stringify(manifest) }
  server.put({ ...applied, metadata: { name: 'a', annotations } })
  const odd = { 'kubectl.kubernetes.io/last-applied-configuration': '{' }
  server.put({ ...cluster('b'), metadata: { name: 'b', annotations: odd } })
  const { last } = await started(t, server)
  assert.deepEqual([...last.clusters.keys()], ['a', 'b'])
  assert.deepEqual(
    last.problems.map(({ cluster: name, severity, path, fix }) => [name, severity, path, fix]),
    [
      ['a', 'warning', 'spec.upstreamSubsets', last.problems[0]?.fix],
      ['a', 'warning', 'spec.degrade.mod', 'did you mean mode?'],
    ],
  )
  assert.match(last.problems[0]?.message ?? '', /^unknown field in the manifest that was applied, ignored$/)
})

test('what is in force instead is reported as long as it is: limits without Redis', async (t) => {
  const server = new FakeServer()
  const limit = { qps: 1, burst: 1 }
  const schema = { name: 'a', strategy: 'globalCount', tokenBucket: limit, globalTokenBucket: limit }
  const object = cluster('a')
  const spec = { ...Object(object['spec']), flowControl: { flowControlSchemas: [schema] } }
  server.put({ ...object, spec })
  const { last } = await started(t, server, { checks: { globalLimits: false } })
  assert.equal(last.clusters.get('a')?.object.spec.flowControl?.flowControlSchemas?.[0]?.strategy, 'local')
  assert.match(messages(last)[0] ?? '', /in force is tokenBucket, in every replica$/)
  const facts = {
    generation: 1,
    problems: last.problems,
    inForce: 1,
    degrade: undefined,
    endpoints: [
      { url: 'http://127.0.0.1:1', disabled: false, state: 'healthy', available: true, message: '' } as const,
    ],
    credentials: [],
    rights: { kind: 'granted' } as const,
    endingSoon: [],
    shadows: [],
    limits: undefined,
    protection: undefined,
  }
  const ready = conditionOf(clusterStatus(facts, undefined, 0), 'Ready')
  assert.equal(ready?.status, 'True')
  assert.match(ready?.message ?? '', /globalTokenBucket: needs Redis.* in force is tokenBucket, in every replica/)
})

describe('a start from the last good state', () => {
  /** What a run with the server there leaves on disk. */
  async function lastRun(t: TestContext, server: FakeServer): Promise<Map<string, ResolvedCluster>> {
    const kept = new Map<string, ResolvedCluster>()
    const lastGood: LastGoodClusters = {
      waitMs: 60_000,
      restore: () => assert.fail('the server is there'),
      keep: (clusters, changed) => {
        for (const name of changed ?? new Set([...kept.keys(), ...clusters.keys()])) {
          const version = clusters.get(name)
          if (version === undefined) kept.delete(name)
          else kept.set(name, structuredClone(version))
        }
      },
      current: () => undefined,
    }
    const { source } = await started(t, server, { lastGood })
    await source.stop()
    return kept
  }

  function restoring(kept: ReadonlyMap<string, ResolvedCluster>) {
    const calls = { keeps: [] as string[][], current: [] as boolean[] }
    const lastGood: LastGoodClusters = {
      waitMs: 1,
      restore: () => kept,
      keep: (clusters) => calls.keeps.push([...clusters.keys()].sort()),
      current: (current) => calls.current.push(current),
    }
    return { calls, lastGood }
  }

  function comeBack(server: FakeServer): void {
    server.isAway = false
    for (const [kind, events] of server.listeners) {
      events.onReplace(server.all(kind))
      events.onState(true, '')
    }
  }

  test('serves what was in force, with its Secrets, while the server is away', async (t) => {
    const server = new FakeServer()
    server.put(secret('s', '1'))
    server.put(cluster('a', { hosts: ['x'], secret: 's' }))
    server.put(cluster('b', { hosts: ['y'] }))
    const kept = await lastRun(t, server)
    server.isAway = true
    const { calls, lastGood } = restoring(kept)
    const { last, deliveries } = await started(t, server, { lastGood })
    assert.deepEqual(hosts(last.clusters), ['a x', 'b y'])
    assert.equal(last.clusters.get('a')?.object.spec.secureServing?.certData, base64('cert 1'))
    assert.equal(last.changed, undefined)
    const before = deliveries.length
    server.listeners.get('UpstreamCluster')?.onState(false, 'connection refused')
    const told = await waitFor('the problem', () => deliveries[before], { intervalMs: 2 })
    assert.match(messages(told).join(), /cannot be watched.*connection refused/)
    assert.equal(told.clusters.size, 2)
    // Nothing of it counts as known to be current.
    assert.deepEqual(calls, { keeps: [], current: [] })
  })

  test('takes over what is new when the server is back: without a moment in which less is served', async (t) => {
    const server = new FakeServer()
    server.put(secret('s', '1'))
    server.put(cluster('a', { hosts: ['x'], secret: 's' }))
    server.put(cluster('b', { hosts: ['y'] }))
    server.put(cluster('c', { hosts: ['z'] }))
    const kept = await lastRun(t, server)
    server.isAway = true
    const { calls, lastGood } = restoring(kept)
    const { deliveries, next } = await started(t, server, { lastGood })
    server.remove('UpstreamCluster', 'b')
    server.put(cluster('c', { hosts: ['other'] }))
    // Free since b is gone.
    server.put(cluster('d', { hosts: ['y'] }))
    const delivery = next()
    comeBack(server)
    await delivery
    await waitFor('the new state', () => hosts(deliveries.at(-1)?.clusters ?? new Map()).join() === 'a x,c other,d y')
    for (const { clusters } of deliveries)
      assert.equal(clusters.get('a')?.object.spec.secureServing?.certData, base64('cert 1'))
    assert.deepEqual(calls.keeps.at(-1), ['a', 'c', 'd'])
    assert.equal(calls.current.at(-1), true)
  })

  test('an object that is broken when the server is back stays in force as it was good', async (t) => {
    const server = new FakeServer()
    server.put(secret('s', '1'))
    server.put(cluster('a', { hosts: ['x'], secret: 's' }))
    server.put(cluster('b', { hosts: ['y'] }))
    const kept = await lastRun(t, server)
    server.isAway = true
    const { lastGood } = restoring(kept)
    const { deliveries } = await started(t, server, { lastGood })
    server.remove('Secret', 'ns/s')
    server.put(cluster('b', { hosts: ['y'], broken: true }))
    comeBack(server)
    await waitFor('the problems', () => (deliveries.at(-1)?.problems.length ?? 0) >= 2)
    const [last] = deliveries.slice(-1)
    assert.ok(last !== undefined)
    assert.match(messages(last).join(), /Secret ns\/s does not exist/)
    assert.deepEqual(hosts(last.clusters), ['a x', 'b y'])
    assert.equal(last.clusters.get('a')?.object.spec.secureServing?.certData, base64('cert 1'))
  })

  test('objects that came in time, and wait for a Secret that cannot be read, are served as they were', async (t) => {
    const server = new FakeServer()
    server.put(secret('s', '1'))
    server.put(cluster('a', { hosts: ['x'], secret: 's' }))
    server.put(cluster('b', { hosts: ['y'] }))
    const kept = await lastRun(t, server)
    server.remove('UpstreamCluster', 'b')
    const client = server.client()
    const follow: ObjectClient['follow'] = (kind, namespace, events) =>
      kind === SECRETS ? { stop: async () => undefined } : client.follow(kind, namespace, events)
    const { lastGood } = restoring(kept)
    const run = await started(t, server, { lastGood: { ...lastGood, waitMs: 50 }, client: { ...client, follow } })
    await waitFor('the deleted one to go', () => run.last.clusters.size === 1)
    assert.deepEqual(hosts(run.last.clusters), ['a x'])
  })

  test('without one a start fails as before', async () => {
    const server = new FakeServer()
    server.isAway = true
    const lastGood: LastGoodClusters = {
      waitMs: 1,
      restore: () => undefined,
      keep: quiet,
      current: quiet,
    }
    const options = { pem: countingPem(), log: logOf([]), secretNamespaces: ['ns'], startTimeoutMs: 50, lastGood }
    const source = createObjectsSource({ client: server.client(), ...options })
    await assert.rejects(
      source.start(() => assert.fail('delivered')),
      /no UpstreamClusters within 0.05 s/,
    )
  })
})
