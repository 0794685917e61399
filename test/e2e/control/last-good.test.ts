// The API server of the objects is away, and the gateway is killed and started: it serves as before from the last good state on
// disk, says so, and takes over what is new when that server is back.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, type TestContext, test } from 'node:test'
import { readStoreKey } from '../../../src/apiserver/io/store/key.ts'
import type { UpstreamCluster } from '../../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { LastGoodFile } from '../../../src/gateway/io/last-good/file.ts'
import { lastGoodKey } from '../../../src/gateway/io/last-good/format.ts'
import { controlPaths } from '../../../src/gateway/io/listener/control-paths.ts'
import { degradeLocally } from '../../../src/incidents/cli/local.ts'
import type { JsonObject } from '../../../src/kit/api/json/json-object.ts'
import { SILENT } from '../../../src/kit/api/ports.ts'
import { OWN_NAMESPACE } from '../../../src/kube/api/own-names.ts'
import { startCluster, type TestCluster } from '../../harness/clusters/cluster.ts'
import { type KubeResponse, kubeRequest } from '../../harness/clusters/kube-request.ts'
import { base64, type Credentials } from '../../harness/clusters/kubeconfig.ts'
import { upstreamClusterFor } from '../../harness/clusters/upstream-cluster.ts'
import { startGateway, type TestGateway } from '../../harness/gateways/gateway.ts'
import { type SeverableProxy, startSeverableProxy } from '../../harness/upstreams/severable-proxy.ts'
import { waitFor } from '../../harness/wait.ts'

/** The API server of the objects, and what is served. */
let control: TestCluster
let upstream: TestCluster
/** The gateway's way to `control`. */
let proxy: SeverableProxy
let dataDir: string
let alice: Credentials
let mallory: Credentials

before(async () => {
  const started = await Promise.all([startCluster({ name: 'control' }), startCluster({ name: 'front' })])
  ;[control, upstream] = started
  proxy = await startSeverableProxy(control.apiservers[0]?.port ?? 0)
  dataDir = mkdtempSync(join(tmpdir(), 'portcullis-last-good-'))
  alice = { cert: upstream.clientCertificate('alice', ['system:masters']) }
  mallory = { cert: upstream.clientCertificate('mallory', ['system:masters']) }
})

after(async () => {
  await proxy.stop()
  await Promise.all([control.stop(), upstream.stop()])
  rmSync(dataDir, { recursive: true, force: true })
})

const SECRET = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'front', namespace: OWN_NAMESPACE },
}

/** `name` leads to `upstream`, with the gateway's credential in a Secret. */
function clusterObject(name: string, spec: JsonObject = {}): JsonObject {
  const object = upstreamClusterFor(upstream, { name, credentials: 'token' })
  const { caData = '' } = object.spec.clientConfig ?? {}
  const clientConfig = { caData, bearerTokenRef: { namespace: OWN_NAMESPACE, name: 'front', key: 'token' } }
  return { ...object, spec: { ...object.spec, clientConfig, ...spec } }
}

/** As JSON: `mode: on` is a boolean in kubectl's YAML. */
async function apply(...objects: readonly JsonObject[]): Promise<void> {
  await control.apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
}

async function gatewayOf(t: TestContext, ...args: string[]): Promise<TestGateway> {
  const kubeconfig = control.kubeconfigFor(control.admin, `https://127.0.0.1:${proxy.port}`)
  const gateway = await startGateway({
    clusters: [],
    source: ['--source=kubernetes', `--kubeconfig=${kubeconfig}`, '--control-listen=127.0.0.1:CONTROL'],
    dataDir,
    args: [`--audit-log-path=${join(dataDir, 'audit.log')}`, ...args],
  })
  t.after(() => gateway.stop('SIGKILL'))
  return gateway
}

function ask(
  gateway: TestGateway,
  name: string,
  user: Credentials,
  path = '/api/v1/namespaces',
): Promise<KubeResponse> {
  return kubeRequest({ server: `https://127.0.0.1:${gateway.port}/clusters/${name}`, user, path })
}

async function metric(gateway: TestGateway, name: string): Promise<number> {
  const line = (await gateway.metrics()).split('\n').find((one) => one.startsWith(`portcullis_${name}`))
  return Number(line?.split(' ')[1] ?? Number.NaN)
}

/** The clusters on disk, by name: `NAME` or `NAME MODE`. */
function kept(): readonly string[] {
  const key = lastGoodKey(readStoreKey(controlPaths(dataDir).storeKey))
  const source = `https://127.0.0.1:${proxy.port}/`
  const file = new LastGoodFile({ dir: join(dataDir, 'last-good'), name: 'objects', key, source, log: SILENT })
  const names = file.read()?.records.map((record) => {
    const { metadata, spec }: UpstreamCluster = Object(record).object
    return [metadata.name, spec.degrade?.mode ?? []].flat().join(' ')
  })
  return (names ?? []).sort((a, b) => (a < b ? -1 : 1))
}

async function kill(gateway: TestGateway): Promise<void> {
  gateway.signal('SIGKILL')
  await gateway.exited
}

function filesBelow(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

test('every control cluster killed, the gateway killed and started: served as before, and taken over when they are back', async (t) => {
  const { token } = upstream.gatewayUser
  const first = await gatewayOf(t)
  await apply({ ...SECRET, stringData: { token } })
  const revoked = { authentication: { revoked: [{ user: 'mallory' }] } }
  await apply(
    clusterObject('front', revoked),
    clusterObject('frozen', { degrade: { mode: 'Freeze', reason: 'INC-1' } }),
    clusterObject('gone'),
  )
  const bearer = { token }
  await waitFor('all of them', async () => {
    const codes = await Promise.all(
      ['front', 'frozen', 'gone'].map(async (name) => (await ask(first, name, alice)).status),
    )
    return codes.join() === '200,503,200'
  })
  assert.equal((await ask(first, 'front', bearer, '/version')).status, 200)
  assert.equal(await metric(first, 'last_good_serving_age_seconds{state="objects"}'), 0)
  // One more change, so that there is something to write.
  await apply(clusterObject('late'))
  await waitFor('the last good state', () => kept().join() === 'front,frozen Freeze,gone,late')
  await control.apiservers[0]?.kill()
  await kill(first)

  const second = await gatewayOf(t)
  const asBefore = async (gateway: TestGateway, late: number): Promise<void> => {
    assert.equal((await ask(gateway, 'front', alice)).status, 200)
    assert.equal((await ask(gateway, 'front', bearer, '/version')).status, 200)
    assert.equal((await ask(gateway, 'front', mallory)).status, 401)
    const frozen = await ask(gateway, 'frozen', alice)
    assert.equal(frozen.status, 503)
    assert.match(frozen.json().message, /INC-1/)
    assert.equal((await ask(gateway, 'late', alice)).status, late)
  }
  await asBefore(second, 200)
  const ready = await second.admin('/readyz?verbose')
  assert.equal(ready.status, 200)
  assert.match(ready.text, /^\[\+\]source-objects ok: the last good state of 20\S+Z is served: /m)
  assert.ok((await metric(second, 'last_good_serving_age_seconds{state="objects"}')) > 0)
  assert.match(second.logs(), /"ageSeconds":\d+.*the last good state is served, because its source is away/)

  // Nothing in clear, in no generation.
  const planted = [token, base64(token), alice.cert?.keyPem.split('\n')[3] ?? token]
  const files = filesBelow(join(dataDir, 'last-good'))
  for (const name of ['objects', 'objects.previous', 'scale'])
    assert.ok(files.includes(join(dataDir, 'last-good', name)), name)
  for (const file of files) for (const text of planted) assert.ok(!readFileSync(file, 'latin1').includes(text), file)

  // The switch works all the same, and over a restart.
  const said: string[] = []
  const io = { now: Date.now, out: (text: string) => void said.push(text), err: (text: string) => void said.push(text) }
  const thrown = {
    cluster: 'late',
    mode: 'Freeze',
    reason: 'INC-2',
    status: false,
    local: true,
    dataDir,
    timeout: '60s',
  }
  assert.equal(await degradeLocally({ ...thrown, ...io }), 0, said.join(''))
  assert.match(said.join(''), /late: degrade mode Freeze in force in all threads of this gateway/)
  // Connections of their own, so that every thread is asked.
  for (let i = 0; i < 8; i++) assert.match((await ask(second, 'late', alice)).text, /INC-2/)
  const audit = readFileSync(join(dataDir, 'audit.log'), 'utf8').split('\n')
  const event = audit
    .map((line) => (line === '' ? {} : JSON.parse(line)))
    .find(({ annotations }) => annotations?.['portcullis.io/local-degrade'])
  assert.match(event?.user.username, /^local:\S+ \(uid \d+\)/)
  assert.deepEqual(
    [event?.verb, event?.objectRef.name, event?.annotations['portcullis.io/reason']],
    ['patch', 'late', 'INC-2'],
  )
  await kill(second)
  const third = await gatewayOf(t)

  // Others change things before the gateway sees them.
  proxy.sever()
  await control.apiservers[0]?.restart()
  await control.kubectl(['delete', 'uc', 'gone'])
  await apply(clusterObject('frozen'), clusterObject('new'))
  await asBefore(third, 503)
  let failed = 0
  let asked = 0
  const reading = new AbortController()
  const reads = (async () => {
    for (; !reading.signal.aborted; asked++) if ((await ask(third, 'front', alice)).status !== 200) failed++
  })()
  proxy.restore()
  await waitFor('what is new', async () => {
    const codes = await Promise.all(
      ['front', 'frozen', 'gone', 'new'].map(async (name) => (await ask(third, name, alice)).status),
    )
    return codes.join() === '200,200,404,200'
  })
  reading.abort()
  await reads
  assert.ok(asked > 0)
  assert.equal(failed, 0)
  assert.equal((await ask(third, 'front', mallory)).status, 401)
  assert.equal(await metric(third, 'last_good_serving_age_seconds{state="objects"}'), 0)
  assert.match((await third.admin('/readyz?verbose')).text, /^\[\+\]source-objects ok$/m)
  // What was thrown here is in the object now, and nowhere else.
  await waitFor('the local switch to go', () => !existsSync(join(dataDir, 'degrade.d/late.yaml')))
  const { stdout } = await control.kubectl(['get', 'uc', 'late', '-o=jsonpath={.spec.degrade}'])
  assert.deepEqual(JSON.parse(stdout), { mode: 'Freeze', reason: 'INC-2' })
  assert.match((await ask(third, 'late', alice)).text, /INC-2/)
  await waitFor('the last good state', () => kept().join() === 'front,frozen,late Freeze,new')
  await kill(third)

  // A server that takes connections and never answers is away, too; and what is kept is what it had last.
  proxy.hang()
  const fourth = await gatewayOf(t)
  const codes = await Promise.all(
    ['front', 'frozen', 'gone', 'new'].map(async (name) => (await ask(fourth, name, alice)).status),
  )
  assert.equal(codes.join(), '200,200,404,200')
  await kill(fourth)
  proxy.restore()
})
