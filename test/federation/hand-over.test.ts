// What a member gets of a request that a federated cluster hands over to it, and who is charged for it: against stubs, which see each header field.

import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ClientHttp2Session, ClientHttp2Stream } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import type { SharesAnswer } from '../../src/admin/app/inside/shares.ts'
import type { UpstreamClusterSpec } from '../../src/gateway/api/upstream-cluster/upstream-cluster.ts'
import { CANCELLED_REQUESTS } from '../../src/gateway/state/user-budgets.ts'
import type { SessionAnswer } from '../../src/insight/core/sessions/session-report.ts'
import type { TopReport } from '../../src/insight/core/top/report.ts'
import { type Config, loadConfig } from '../../src/process/config/config.ts'
import { h2Open, h2Request, type Response } from '../harness/clients/h2-client.ts'
import { type FederatedStub, startFederatedStub } from '../harness/federation/federated-stub.ts'
import type { InProcessGateway } from '../harness/gateways/in-process.ts'
import { ALLOW_ALL } from '../harness/objects/objects.ts'
import { reply, type SeenRequest } from '../harness/upstreams/stub-upstream.ts'
import { waitFor } from '../harness/wait.ts'

const LOG = '/api/v1/namespaces/east--default/pods/web/log'

const POLICY = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- { level: None, namespaces: [hidden, east--default] }
- { level: Metadata, namespaces: [default, east--hidden] }
- { level: None }
`
/** Fewer than a connection may have open. */
const AT_ONCE = 100

const cleanups: (() => Promise<void> | void)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Scene extends FederatedStub {
  /** Logs that wait for their first byte. */
  readonly held: SeenRequest[]
}

async function setUp(ofAll: Partial<UpstreamClusterSpec> = {}, config: Partial<Config> = {}): Promise<Scene> {
  const stub = await startFederatedStub(ofAll, config)
  cleanups.push(stub.stop)
  const held: SeenRequest[] = []
  stub.east.answer = (request) => {
    if (request.path.includes('held')) held.push(request)
    else reply(request, 200, 'a line\n')
  }
  return { ...stub, held }
}

function ask(session: ClientHttp2Session, path: string, more: readonly string[] = []): Promise<Response> {
  return h2Request(session, [':method', 'GET', ':path', path, ':authority', 'all', ...more])
}

function open(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  return h2Open(session, [':path', path, ':authority', 'all'])
}

/** Places of requests. */
async function sharesHeld(gateway: InProcessGateway): Promise<readonly string[]> {
  const answer = (await (await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/shares`)).json()) as SharesAnswer
  const taken = answer.limits.filter(({ limit, held }) => held > 0 && ['watches', 'requests-inflight'].includes(limit))
  return taken.map(({ limit, held }) => `${limit} ${held}`)
}

async function openLogs(gateway: InProcessGateway, cluster: string): Promise<number> {
  const rows = (await gateway.metrics()).split('\n').filter((line) => {
    return line.startsWith('portcullis_apiserver_longrunning_requests{') && line.includes(`cluster="${cluster}"`)
  })
  return rows.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
}

test('the member gets its own names, and the caller with the groups that are known everywhere', async () => {
  const { east, connect } = await setUp()
  const groups = ['dev', 'system:masters', 'system:nodes', 'ops']
  const query = '?container=c&tailLines=3'
  const answer = await ask(connect('alice', groups), LOG + query, ['authorization', 'Basic eDp5', 'x-other', 'kept'])
  assert.equal(answer.status, 200, String(answer.body))
  assert.equal(String(answer.body), 'a line\n')
  const [seen, ...others] = east.seen.filter(({ path }) => path.includes('/log'))
  assert.ok(seen !== undefined && others.length === 0)
  assert.equal(seen.path, `/api/v1/namespaces/default/pods/web/log${query}`)
  assert.deepEqual(seen.values('impersonate-user'), ['alice'])
  assert.deepEqual(seen.values('impersonate-group'), ['dev', 'ops', 'system:authenticated'])
  assert.deepEqual(seen.values('authorization'), ['Bearer gateway-token'])
  assert.deepEqual(seen.values('x-other'), ['kept'])
})

test('a client cannot say who it is, in either cluster', async () => {
  const { east, connect } = await setUp()
  for (const fields of [
    ['impersonate-user', 'bob'],
    ['impersonate-group', 'system:masters'],
    ['impersonate-user', 'bob', 'impersonate-group', 'system:masters'],
    ['impersonate-extra-x', 'y'],
  ]) {
    const answer = await ask(connect('alice'), LOG, fields)
    assert.notEqual(answer.status, 200, fields.join(' '))
  }
  for (const user of ['system:admin', 'system:serviceaccount:default:default'])
    assert.equal((await ask(connect(user), LOG)).status, 403, user)
  assert.deepEqual(
    east.seen.filter(({ path }) => path.includes('/log')),
    [],
  )
})

test('one place is taken, of the sender, and counted as running in the member; all of it ends with the request', async () => {
  const { gateway, held, connect } = await setUp()
  const alice = connect('alice')
  const stream = open(alice, `${LOG}?held`)
  await waitFor('it to be open', () => held.length === 1)
  const taken = await sharesHeld(gateway)
  assert.deepEqual(taken, ['watches 1'])
  assert.deepEqual([await openLogs(gateway, 'all'), await openLogs(gateway, 'east')], [0, 1])
  stream.close()
  await waitFor('the place', async () => (await sharesHeld(gateway)).length === 0)
  assert.deepEqual([await openLogs(gateway, 'all'), await openLogs(gateway, 'east')], [0, 0])
})

test('who is logged in at the member includes who comes through the federated cluster, and what is open there', async () => {
  const { gateway, held, connect } = await setUp()
  const seen = async (query: string): Promise<string[]> => {
    const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/sessions?${query}`)
    const { sessions } = (await answer.json()) as SessionAnswer
    return sessions.map(({ cluster, by, user, open }) => `${cluster} ${by} ${user} ${open}`).sort()
  }
  const [alice, bob] = [connect('alice'), connect('bob')]
  assert.equal((await ask(bob, LOG)).status, 200)
  // Known to no member.
  assert.equal((await ask(connect('system:admin'), LOG)).status, 403)
  const stream = open(alice, `${LOG}?held`)
  await waitFor('it to be open', () => held.length === 1)
  assert.deepEqual(await seen('cluster=east'), ['east federation:all alice 1', 'east federation:all bob 0'])
  assert.deepEqual(await seen('user=alice'), ['all certificate alice 1', 'east federation:all alice 1'])
  stream.close()
  await waitFor('its end', async () => (await seen('cluster=east')).includes('east federation:all alice 0'))
  assert.deepEqual(await seen('user=alice'), ['all certificate alice 0', 'east federation:all alice 0'])
})

test('what is handed over counts as a request of the member among the top talkers, under its names', async () => {
  const { gateway, connect } = await setUp()
  const alice = connect('alice')
  assert.equal((await ask(alice, LOG)).status, 200)
  assert.equal((await ask(alice, '/api/v1/namespaces/east--default/configmaps/x')).status, 404)
  const counted = async (query: string): Promise<string> => {
    const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/top?${query}`)
    const { rows } = (await answer.json()) as TopReport
    return rows.map(({ name, requests }) => `${name} ${requests}`).join()
  }
  await waitFor('both to be counted', async () => (await counted('by=cluster')).split(',').length === 2)
  assert.equal(await counted('by=namespace&cluster=east'), 'default 1')
  assert.equal(await counted('by=namespace&cluster=all'), 'east--default 1')
})

test('a tap of either cluster shows it, as a request of the member', async () => {
  const { gateway, connect } = await setUp()
  const alice = connect('alice')
  const taps = ['all', 'east'].map(async (cluster) => {
    const answer = await fetch(`http://127.0.0.1:${gateway.adminPort}/api/v1/tap?cluster=${cluster}&limit=1`)
    return await answer.text()
  })
  let shown: readonly string[] | undefined
  void Promise.all(taps).then((texts) => {
    shown = texts
  })
  // One of a tap that has begun.
  await waitFor('the taps to end', async () => {
    assert.equal((await ask(alice, LOG)).status, 200)
    return shown !== undefined
  })
  for (const text of shown ?? []) {
    const lines = text.trim().split('\n')
    const { cluster, namespace, user } = lines.map((line) => JSON.parse(line)).find(({ type }) => type === 'request')
    assert.deepEqual([cluster, namespace, user], ['east', 'default', 'alice'])
  }
})

test('an audit policy decides by the names and the user of the member', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hand-over-'))
  cleanups.push(() => rmSync(folder, { recursive: true }))
  const policyFile = join(folder, 'policy.yaml')
  const logFile = join(folder, 'audit.log')
  writeFileSync(policyFile, POLICY)
  const flags = { source: 'files', configDir: 'given', auditPolicyFile: policyFile, auditLogPath: logFile }
  const { auditPolicyFile, auditLogPath } = loadConfig({ flags, env: {}, readFile: () => '' })
  const { connect } = await setUp({}, { auditPolicyFile, auditLogPath })
  const alice = connect('alice', ['system:masters'])
  for (const namespace of ['hidden', 'default'])
    assert.equal((await ask(alice, LOG.replace('default', namespace))).status, 200)
  const events = await waitFor('the events', () => {
    const lines = existsSync(logFile) ? readFileSync(logFile, 'utf8').split('\n').slice(0, -1) : []
    const all = lines.map((line) => JSON.parse(line))
    return all.some(({ stage }) => stage === 'ResponseComplete') && all
  })
  assert.deepEqual(
    events.map(({ stage, objectRef }) => `${stage} ${objectRef.namespace}`),
    ['ResponseStarted default', 'ResponseComplete default'],
  )
  for (const { user, annotations } of events) {
    assert.deepEqual(user.groups, ['system:authenticated'])
    assert.equal(annotations['portcullis.io/cluster'], 'east')
    assert.equal(annotations['portcullis.io/federation'], 'all')
  }
})

test('a slot of the federated cluster is held until the end, also of a request that its client gives up', async () => {
  const flowControl = { flowControlSchemas: [{ name: 'one', maxRequestsInflight: { max: 1 } }] }
  const dispatchPolicies = [{ ...ALLOW_ALL, flowControlSchemaName: 'one' }]
  const { held, connect } = await setUp({ flowControl, dispatchPolicies })
  const alice = connect('alice')
  for (let round = 0; round < 3; round++) {
    const stream = open(alice, `${LOG}?held`)
    await waitFor('it to be open', () => held.length === round + 1)
    assert.equal((await ask(alice, LOG)).status, 429)
    stream.close()
    await waitFor('the slot', async () => (await ask(alice, LOG)).status === 200)
  }
})

test('a token is given back where the member has no server', async () => {
  const flowControl = { flowControlSchemas: [{ name: 'one', tokenBucket: { qps: 1, burst: 1 } }] }
  const dispatchPolicies = [{ ...ALLOW_ALL, flowControlSchemaName: 'one' }]
  const { gateway, east, connect } = await setUp({ flowControl, dispatchPolicies })
  east.healthy = false
  await waitFor('it to be unhealthy', async () =>
    /portcullis_endpoint_healthy\{[^}]*cluster="east"[^}]*\} 0/.test(await gateway.metrics()),
  )
  const alice = connect('alice')
  for (let round = 0; round < 5; round++) assert.equal((await ask(alice, LOG)).status, 503)
})

test('one who cancels too much is throttled, though it is the member that counts it', async () => {
  const { held, connect } = await setUp()
  let cancelled = 0
  const answer = await waitFor('the refusal', async () => {
    // A connection on which so much is cancelled would be ended.
    const connection = connect('alice')
    const streams = Array.from({ length: AT_ONCE }, () => open(connection, `${LOG}?held`))
    cancelled += AT_ONCE
    const refused = (): number => streams.filter(({ closed }) => closed).length
    for (const stream of streams) stream.resume()
    await waitFor('all of them', () => held.length + refused() >= AT_ONCE)
    held.length = 0
    for (const stream of streams) stream.close()
    const one = await ask(connect('alice'), LOG)
    return one.status !== 200 && one
  })
  assert.equal(answer.status, 429, String(answer.body))
  assert.match(String(answer.body), /cancel/)
  assert.ok(cancelled >= CANCELLED_REQUESTS.burst)
  assert.equal((await ask(connect('bob'), LOG)).status, 200)
})
