// The audit log of the embedded API server: every request, once, with who sent it, and nothing of what was in it.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { ControlClient, type ControlResponse, cluster, secret, UC } from '../harness/clients/control-client.ts'
import { h2Connect, h2Request } from '../harness/clients/h2-client.ts'
import { type AuditedRequest, startControl, type TestControl } from '../harness/gateways/control.ts'
import { type EmbeddedGateway, startEmbedded } from '../harness/gateways/embedded.ts'
import { waitFor } from '../harness/wait.ts'

const SECRETS = '/api/v1/namespaces/default/secrets'
const WORD = 'a-word-that-nobody-may-write-down'
let control: TestControl
let admin: ControlClient
let viewer: ControlClient
let anonymous: ControlClient

before(async () => {
  control = await startControl()
  admin = new ControlClient(control, { cert: control.admin })
  viewer = new ControlClient(control, { cert: control.viewer })
  anonymous = new ControlClient(control)
})
after(async () => {
  for (const client of [admin, viewer, anonymous]) client.close()
  await control.stop()
})

/** The one event of an answer. */
function eventOf({ headers }: Pick<ControlResponse, 'headers'>): AuditedRequest {
  const events = control.audited.filter(({ auditID }) => auditID === headers['audit-id'])
  assert.equal(events.length, 1, `${events.length} events`)
  return events[0] ?? {}
}

const ALICE = { username: 'alice', groups: ['portcullis:admins', 'system:authenticated'] }
const BOB = { username: 'bob', groups: ['portcullis:viewers', 'system:authenticated'] }

function withoutExtra({ extra, ...user }: AuditedRequest): AuditedRequest {
  const [[key, values]] = Object.entries(extra) as [[string, string[]]]
  assert.equal(key, 'authentication.kubernetes.io/credential-id')
  assert.match(values[0] ?? '', /^X509SHA256=[0-9a-f]{64}$/)
  return user
}

test('a write: who, what, from where, and how it went', async () => {
  const answer = await admin.call('POST', `${UC}?fieldManager=me`, {
    body: cluster('a'),
    headers: { 'user-agent': 'kubectl/v1.34' },
  })
  assert.equal(answer.code, 201)
  const { user, requestReceivedTimestamp, stageTimestamp, ...event } = eventOf(answer)
  assert.deepEqual(withoutExtra(user), ALICE)
  assert.ok(requestReceivedTimestamp <= stageTimestamp)
  assert.deepEqual(event, {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: answer.headers['audit-id'],
    stage: 'ResponseComplete',
    requestURI: `${UC}?fieldManager=me`,
    verb: 'create',
    sourceIPs: ['127.0.0.1'],
    userAgent: 'kubectl/v1.34',
    objectRef: { resource: 'upstreamclusters', name: 'a', apiGroup: 'proxy.kubegateway.io', apiVersion: 'v1alpha1' },
    responseStatus: { metadata: {}, code: 201 },
    annotations: { 'portcullis.io/server': 'control', 'authorization.k8s.io/decision': 'allow' },
  })
})

test('the degrade switch and revocations are on record with what they were and are', async () => {
  const changes = async (spec: object, query = ''): Promise<AuditedRequest> => {
    const answer = await admin.mergePatch(`${UC}/a${query}`, { spec })
    assert.equal(answer.code, 200, answer.text)
    const { annotations, verb, objectRef } = eventOf(answer)
    assert.deepEqual([verb, objectRef.name], ['patch', 'a'])
    return annotations
  }
  const freeze = { degrade: { mode: 'Freeze', reason: 'INC-1' } }
  assert.equal((await changes(freeze, '?dryRun=All'))['portcullis.io/degrade'], undefined)
  assert.equal((await changes(freeze))['portcullis.io/degrade'], 'Off -> Freeze')
  assert.equal((await changes({ default: true }))['portcullis.io/degrade'], undefined)
  const revoked = [{ user: 'mallory' }]
  assert.equal((await changes({ authentication: { revoked } }))['portcullis.io/revoked'], '0 -> 1')
  const gone = eventOf(await admin.delete(`${UC}/a`)).annotations
  assert.equal(gone['portcullis.io/degrade'], 'Freeze -> Off')
  const made = await admin.post(UC, cluster('b', freeze))
  assert.equal(eventOf(made).annotations['portcullis.io/degrade'], 'Off -> Freeze')
})

test('every way to undo a measure is on record: in shadow, at its end, by exemption, for another user, by deletion', async () => {
  assert.equal((await admin.post(UC, cluster('measured', {}))).code, 201)
  const changes = async (spec: object, metadata: object = {}): Promise<AuditedRequest> => {
    const answer = await admin.mergePatch(`${UC}/measured`, { metadata, spec })
    assert.equal(answer.code, 200, answer.text)
    return eventOf(answer).annotations
  }
  const [degrade, revoked] = ['portcullis.io/degrade', 'portcullis.io/revoked']
  await changes({ degrade: { mode: 'Freeze' }, authentication: { revoked: [{ user: 'mallory' }] } })
  assert.equal((await changes({ degrade: { shadow: true } }))[degrade], 'Freeze -> Freeze in shadow')
  assert.equal((await changes({ degrade: { shadow: null } }))[degrade], 'Freeze in shadow -> Freeze')
  assert.equal((await changes({ degrade: { reason: 'another' } }))[degrade], undefined)
  const past = '2001-01-01T00:00:00Z'
  assert.equal((await changes({ degrade: { expiresAt: past } }))[degrade], `Freeze -> Freeze until ${past}`)
  const rule = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }
  assert.equal(
    (await changes({ degrade: { expiresAt: null, exempt: [rule] } }))[degrade],
    `Freeze until ${past} -> Freeze with 1 exempt`,
  )
  assert.equal(
    (await changes({ degrade: { exempt: [{ ...rule, verbs: ['get'] }] } }))[degrade],
    'Freeze with 1 exempt -> Freeze with 1 exempt',
  )
  const swapped = await changes({ authentication: { revoked: [{ user: 'nobody' }] } })
  assert.equal(swapped[revoked], '1 -> 1 (1 added, 1 removed)')
  assert.equal((await changes({ authentication: { revoked: [{ user: 'nobody', reason: 'x' }] } }))[revoked], undefined)
  const gates = (text: string): object => ({ annotations: { 'proxy.kubegateway.io/feature-gates': text } })
  const gate = 'portcullis.io/deny-all-requests'
  assert.equal((await changes({}, gates('DenyAllRequests=true')))[gate], 'false -> true')
  assert.equal((await changes({}, gates('CloseConnectionWhenIdle=true')))[gate], 'true -> false')
  assert.equal((await admin.post(UC, cluster('unmeasured', {}))).code, 201)
  const dry = eventOf(await admin.delete(`${UC}?dryRun=All`)).annotations
  assert.equal(dry['portcullis.io/deleted'], undefined)
  const frozen = control.registry.store
    .list('upstreamclusters.proxy.kubegateway.io', { namespace: '' })
    .filter(({ object }) => {
      return Object(object['spec']).degrade?.mode === 'Freeze'
    }).length
  const all = eventOf(await admin.delete(UC)).annotations
  assert.match(all['portcullis.io/deleted'], new RegExp(`(^|, )${frozen} Freeze, \\d+ Off, 1 revoked$`))
})

describe('refused', () => {
  test('by rights: 403 with the user', async () => {
    const { user, responseStatus, annotations } = eventOf(await viewer.get(SECRETS))
    assert.deepEqual(withoutExtra(user), BOB)
    assert.equal(responseStatus.code, 403)
    assert.equal(responseStatus.reason, 'Forbidden')
    assert.match(responseStatus.message, /User "bob" cannot list resource "secrets"/)
    assert.equal(annotations['authorization.k8s.io/decision'], 'forbid')
    const stranger = eventOf(await anonymous.get(UC))
    assert.deepEqual(stranger.user, { username: 'system:anonymous', groups: ['system:unauthenticated'] })
  })

  test('an invalid credential: 401, and no user in the event', async () => {
    const client = new ControlClient(control, { token: WORD })
    const { user, responseStatus } = eventOf(await client.get(UC))
    client.close()
    assert.deepEqual(user, {})
    assert.deepEqual(responseStatus, {
      metadata: {},
      status: 'Failure',
      message: 'Unauthorized',
      reason: 'Unauthorized',
      code: 401,
    })
  })

  test('what is too large, not served, not acceptable, or no request', async () => {
    const large = await admin.post(SECRETS, secret('large', { stringData: { a: 'x'.repeat(4_000_000) } }))
    assert.deepEqual([large.code, eventOf(large).responseStatus.reason], [413, 'RequestEntityTooLarge'])
    for (const [answer, code] of [
      [await admin.get('/apis/nothing.example.com/v1/things'), 404],
      [await admin.call('PUT', UC, { body: {} }), 405],
      [await admin.get(UC, { accept: 'text/html' }), 406],
      [await admin.get('/api/%zz'), 400],
      [await admin.call('DELETE', '/livez'), 404],
    ] as const) {
      assert.equal(answer.code, code)
      assert.equal(eventOf(answer).responseStatus.code, code)
    }
    assert.equal(eventOf(await anonymous.get('/livez')).verb, 'get')
  })
})

test('impersonation: user is the original user, impersonatedUser the other; if refused, the request is recorded', async () => {
  const headers = { 'impersonate-user': 'carol', 'impersonate-group': 'portcullis:viewers' }
  const { user, impersonatedUser } = eventOf(await admin.get(UC, headers))
  assert.deepEqual(withoutExtra(user), ALICE)
  assert.deepEqual(impersonatedUser, { username: 'carol', groups: BOB.groups })
  const refused = eventOf(await viewer.get(UC, { 'impersonate-user': 'alice' }))
  assert.deepEqual(withoutExtra(refused.user), BOB)
  assert.equal(refused.impersonatedUser, undefined)
  assert.match(refused.responseStatus.message, /User "bob" cannot impersonate resource "users"/)
})

test('a watch is two events: begun and over', async () => {
  const auditID = 'a-watch-of-the-test'
  const watch = await viewer.watch(`${UC}?watch=1`, { 'audit-id': auditID })
  const events = (): AuditedRequest[] => control.audited.filter((event) => event['auditID'] === auditID)
  assert.deepEqual(
    events().map(({ stage, verb }) => [stage, verb]),
    [['ResponseStarted', 'watch']],
  )
  watch.close()
  const both = await waitFor('the end of the watch', () => events().length === 2 && events())
  assert.deepEqual([both[1]?.['stage'], both[1]?.['responseStatus'].code], ['ResponseComplete', 200])
  const short = await viewer.watch(`${UC}?watch=1&timeoutSeconds=1`, { 'audit-id': 'short' })
  await short.end()
  await waitFor('its two events', () => control.audited.filter((event) => event['auditID'] === 'short').length === 2)
})

test('a client that disconnects before the response is recorded, too', async () => {
  const { port, caPem: ca } = control
  const { certPem: cert, keyPem: key } = control.admin
  const headers = { 'content-type': 'application/json', 'content-length': '1000', 'audit-id': 'gone' }
  const sent = request({ host: '127.0.0.1', port, ca, cert, key, method: 'POST', path: SECRETS, headers })
  sent.on('error', () => undefined)
  // Head and a part of the body are on their way: how long that takes depends on the machine.
  await new Promise((resolve) => sent.write('{"kind":', resolve))
  sent.destroy()
  const event = await waitFor('its event', () => control.audited.find(({ auditID }) => auditID === 'gone'))
  assert.equal(event['responseStatus'].code, 0)
  assert.equal(event['annotations']['portcullis.io/aborted-by'], 'client')
})

test('no body and no credential is written down, whatever becomes of the request', async () => {
  const token = issueControlToken(control.tokenKey, {
    user: 'tim',
    groups: ['portcullis:admins'],
    ttlSeconds: 60,
    nowMs: Date.now(),
  })
  const tim = new ControlClient(control, { token })
  const key = Buffer.from(WORD).toString('base64')
  const yaml = { contentType: 'application/yaml' }
  const answers = [
    await tim.post(SECRETS, secret('s', { stringData: { password: WORD } })),
    await tim.post(SECRETS, secret('S', { stringData: { password: WORD } })),
    await tim.post(SECRETS, `{"kind": "${WORD}"`),
    await tim.call('POST', SECRETS, { body: `${WORD}: [`, ...yaml }),
    await tim.post(UC, `{"${WORD}": 1}`),
    await tim.post(UC, cluster('c', { clientConfig: { bearerToken: `${key}\n`, insecure: true } })),
    await tim.post(UC, cluster('c', { clientConfig: { keyData: key } })),
    await tim.mergePatch(`${UC}/b`, { kind: WORD, spec: { clientConfig: { bearerToken: WORD } } }),
    await tim.call('PATCH', `${UC}/b`, {
      body: [{ op: 'test', path: '/spec', value: WORD }],
      contentType: 'application/json-patch+json',
    }),
    await tim.call('PATCH', `${UC}/b?fieldManager=x`, {
      body: `apiVersion: ${WORD}`,
      contentType: 'application/apply-patch+yaml',
    }),
    await tim.call('DELETE', `${SECRETS}/s`, { body: `{"kind":"${WORD}"}` }),
    await tim.call('GET', `${SECRETS}/s`, {
      headers: { 'x-remote-user': WORD, cookie: WORD, authorization: `Bearer ${token}` },
    }),
  ]
  for (const answer of answers) {
    const event = eventOf(answer)
    assert.equal(event['user'].username, 'tim')
    assert.match(event['user'].extra['authentication.kubernetes.io/credential-id'][0], /^JTI=/)
  }
  assert.ok(answers.some(({ code }) => code === 422) && answers.some(({ code }) => code === 400))
  const text = JSON.stringify(control.audited)
  for (const hidden of [WORD, key, token, token.split('.')[2] ?? '']) assert.ok(!text.includes(hidden), hidden)
  tim.close()
})

test('lines are bounded, and are one line each', async () => {
  const agent = `\u00e9${'a'.repeat(20_000)}`
  const answer = await anonymous.get(`/livez?x=${'y'.repeat(20_000)}`, { 'user-agent': agent })
  const event = eventOf(answer)
  assert.ok(JSON.stringify(event).length < 7000)
  assert.match(event['requestURI'], /^\/livez\?x=y+\.\.\.TRUNCATED$/)
  assert.match(event['userAgent'], /a\.\.\.TRUNCATED$/)
})

test('HTTP/2: each of many at once has its own event', async () => {
  const session = h2Connect({
    port: control.port,
    serverName: 'localhost',

    certificate: control.viewer,
  })
  const ids = Array.from({ length: 50 }, (_, i) => `h2-${i}`)
  await Promise.all(ids.map((id, i) => h2Request(session, [':path', i % 2 === 0 ? UC : SECRETS, 'audit-id', id])))
  const seen = control.audited.filter(({ auditID }) => ids.includes(auditID))
  assert.deepEqual(seen.map(({ auditID }) => auditID).sort(), [...ids].sort())
  assert.deepEqual(new Set(seen.map(({ responseStatus }) => responseStatus.code)), new Set([200, 403]))
  session.destroy()
})

describe('destination', () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-audit-'))
  after(() => rmSync(dir, { recursive: true }))

  const lines = (file: string): AuditedRequest[] =>
    readFileSync(join(dir, file), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))

  async function events(
    args: readonly string[],
    file: string,
    look: (gateway: EmbeddedGateway) => Promise<void> = () => Promise.resolve(),
  ): Promise<AuditedRequest[]> {
    let gateway: EmbeddedGateway | undefined
    try {
      gateway = await startEmbedded({ args })
      const answer = await gateway.admin.get(UC)
      await look(gateway)
      return await waitFor('the event', () => {
        const all = lines(file)
        return all.some(({ auditID }) => auditID === answer.headers['audit-id']) && all
      })
    } finally {
      await gateway?.stop()
    }
  }

  test('with --audit-log-path it is the same file', async () => {
    const all = await events([`--audit-log-path=${join(dir, 'all')}`], 'all')
    assert.ok(all.some(({ annotations }) => annotations['portcullis.io/server'] === 'control'))
  })

  test('--control-audit-log-path names its own', async () => {
    const args = [`--audit-log-path=${join(dir, 'data')}`, `--control-audit-log-path=${join(dir, 'own')}`]
    const own = await events(args, 'own', async ({ gateway }) => {
      assert.match(await gateway.metrics(), /^portcullis_log_lines_dropped\{log="control-audit"\} 0$/m)
    })
    assert.ok(own.every(({ annotations }) => annotations['portcullis.io/server'] === 'control'))
    assert.deepEqual(lines('data'), [])
  })
})
