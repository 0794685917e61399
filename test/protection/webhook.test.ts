// Pod protection as a webhook, over its real port: callers, paths, reviews and answers. What a real kube-apiserver makes of them is
// tested in test/e2e/control/.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, test } from 'node:test'
import type { RevocationCheck } from '../../src/apiserver/access/revoked-credentials.ts'
import { MAX_REVIEW_VALUES } from '../../src/apiserver/webhooks/review-exchange.ts'
import { WEBHOOKS_GROUP, webhookUser } from '../../src/apiserver/webhooks/webhook-callers.ts'
import type { CompiledProtection } from '../../src/gateway/core/cluster/compiled-cluster.ts'
import { compileRevocation, revokedPart } from '../../src/gateway/core/cluster/revocation.ts'
import { controlPaths } from '../../src/gateway/io/listener/control-paths.ts'
import { revocableTokenHash } from '../../src/gateway/io/reviews/credential-hashes.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { systemClock } from '../../src/kit/io/world/clock.ts'
import { statusError } from '../../src/kube/api/status.ts'
import { issueControlCertificate, readControlTokenKey } from '../../src/pki/io/control-pki.ts'
import { generateTokenKey, issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { createCA, issueCertificate, type KeyPair } from '../../src/pki/io/pki.ts'
import { createWebhookTokens, type WebhookTokens } from '../../src/pki/io/webhook-tokens.ts'
import type { ProtectionRequest, ProtectionVerdict } from '../../src/protection/api/protection.ts'
import { ProtectionPort } from '../../src/protection/app/webhook.ts'
import { createProtectionWebhook, type WebhookOutcome } from '../../src/protection/webhooks/webhook.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape are looked into
type Json = any

interface Answer {
  readonly code: number
  readonly text: string
  readonly json: Json
}

const PROTECTION: CompiledProtection = {
  cell: 'worker-1',
  shadow: false,
  failurePolicy: 'Fail',
  timeoutMs: 10_000,
  excludedNamespaces: new Set(['left-alone']),
  objectSelector: { matchExpressions: [{ key: 'unguarded', operator: 'DoesNotExist' }] },
  aggregation: {
    enabled: true,
    syncTime: 'ResourceVersion',
    syncTimeAnnotation: '',
    podSelector: undefined,
    updateTrigger: undefined,
  },
}
const ADMITTED: ProtectionVerdict = {
  status: 'AdmittedAll',
  admitted: true,
  overridden: '',
  protector: '',
  message: '',
  causes: [],
  retryAfterSeconds: 0,
  freePass: false,
  reservation: undefined,
}
const REJECTED: ProtectionVerdict = {
  ...ADMITTED,
  status: 'Rejected',
  admitted: false,
  protector: 'shop/web',
  message: 'PodProtector shop/web reports too few available replicas to admit pod deletion: 5 required, 5 counted',
  causes: [{ reason: 'PodProtector', message: 'shop/web', field: '' }],
}
const RETRY: ProtectionVerdict = { ...REJECTED, status: 'RetryAdvised', retryAfterSeconds: 1 }
const AWAY: ProtectionVerdict = { ...ADMITTED, status: 'Error', admitted: false, message: 'the core cluster is away' }

const quiet = (): void => undefined
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
const dir = mkdtempSync(join(tmpdir(), 'portcullis-protection-'))
const agents: Agent[] = []
let port: ProtectionPort
let tokens: WebhookTokens
let ours: KeyPair
let token = ''

let protection = PROTECTION
let verdict: (request: ProtectionRequest) => Promise<ProtectionVerdict>
let pods: Map<string, JsonObject>
/** Objects of the same names, in another cluster of the cell. */
let twins: Map<string, JsonObject>
let covered: (namespace: string) => boolean
let ready = true
let revoked: RevocationCheck = () => ''
const asked: ProtectionRequest[] = []
const lookedUp: string[] = []
const outcomes: WebhookOutcome[] = []

before(async () => {
  port = new ProtectionPort({
    listen: { host: '127.0.0.1', port: 0 },
    hosts: ['webhook.test'],
    dataDir: dir,
    revoked: (credential) => revoked(credential),
    log,
  })
  await port.open(
    createProtectionWebhook({
      gate: {
        covers: (namespace) => covered(namespace),
        review: (requests) => {
          asked.push(...requests)
          return Promise.all(requests.map((one) => verdict(one)))
        },
        release: () => assert.fail('what the webhook reserves is not released'),
      },
      cell: (id) => (id === 'worker-1' || id === 'worker-2' ? { protection: { ...protection, cell: id } } : undefined),
      getPods: async (cell, namespace, name) => {
        lookedUp.push(`${cell} ${namespace}/${name}`)
        const found = pods.get(name)
        if (found === undefined) throw statusError('NotFound', `pods "${name}" not found`)
        if (found['broken'] === true) throw new Error('connect ECONNREFUSED')
        const twin = twins.get(name)
        return await Promise.resolve(twin === undefined ? [found] : [found, twin])
      },
      authenticate: port.authenticate,
      clock: systemClock,
      log,
      ready: () => ready,
      onReview: (outcome) => outcomes.push(outcome),
    }),
  )
  const { pki } = controlPaths(dir)
  ours = issueControlCertificate(pki, { user: webhookUser('worker-1'), groups: [WEBHOOKS_GROUP] })
  tokens = createWebhookTokens(readControlTokenKey(pki))
  token = tokens.tokenOf('worker-1')
})

beforeEach(() => {
  protection = PROTECTION
  verdict = () => Promise.resolve(ADMITTED)
  pods = new Map([['web-1', pod()]])
  twins = new Map()
  covered = () => true
  ready = true
  revoked = () => ''
  for (const list of [asked, lookedUp, outcomes]) list.length = 0
})

after(async () => {
  for (const agent of agents) agent.destroy()
  await port?.close()
  rmSync(dir, { recursive: true, force: true })
})

function pod(metadata: object = {}): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'shop', name: 'web-1', uid: 'pod-uid', resourceVersion: '7', ...metadata },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    },
  }
}

function review(fields: object = {}): JsonObject {
  return {
    kind: 'AdmissionReview',
    apiVersion: 'admission.k8s.io/v1',
    request: {
      uid: 'review-uid',
      kind: { group: '', version: 'v1', kind: 'Pod' },
      resource: { group: '', version: 'v1', resource: 'pods' },
      name: 'web-1',
      namespace: 'shop',
      operation: 'DELETE',
      userInfo: { username: 'alice' },
      object: null,
      oldObject: pod(),
      dryRun: false,
      options: { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1' },
      ...fields,
    },
  }
}

function eviction(fields: object = {}, request: object = {}): JsonObject {
  return review({
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
    subResource: 'eviction',
    operation: 'CREATE',
    object: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'web-1', namespace: 'shop' }, ...fields },
    oldObject: null,
    options: { kind: 'CreateOptions', apiVersion: 'meta.k8s.io/v1' },
    ...request,
  })
}

interface Sent {
  readonly method?: string
  readonly body?: unknown
  readonly cert?: KeyPair | undefined
  readonly bearer?: string
}

function send(path: string, { method = 'POST', body = review(), cert, bearer }: Sent = {}): Promise<Answer> {
  const agent = new Agent({ ca: port.caPem, ...(cert !== undefined && { cert: cert.certPem, key: cert.keyPem }) })
  agents.push(agent)
  const payload = method === 'GET' ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const headers = {
    'content-type': 'application/json',
    // Node says no length of the body of a DELETE by itself.
    ...(payload !== undefined && { 'content-length': String(Buffer.byteLength(payload)) }),
    ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
  }
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port: port.port, method, path, agent, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('error', reject)
      answer.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        resolve({ code: answer.statusCode ?? 0, text, json: text.startsWith('{') ? JSON.parse(text) : undefined })
      })
    })
    sent.on('error', reject)
    sent.end(payload)
  })
}

/** By a caller that is trusted. */
async function ask(body: unknown, path = '/worker-1?timeout=10s'): Promise<Json> {
  const { code, text, json } = await send(path, { body, bearer: token })
  assert.equal(code, 200, text)
  assert.equal(json.kind, 'AdmissionReview')
  assert.equal(json.apiVersion, 'admission.k8s.io/v1')
  assert.equal(json.response.uid, 'review-uid')
  return json.response
}

test('callers: certificate, token in Authorization, token in the path; each for its own cell', async () => {
  const { pki } = controlPaths(dir)
  const jwt = (user: string, groups: string[]): string =>
    issueControlToken(readControlTokenKey(pki), { user, groups, ttlSeconds: 60, nowMs: Date.now() })
  const mine = jwt(webhookUser('worker-1'), [WEBHOOKS_GROUP])
  const stranger = issueCertificate(createCA({ commonName: 'portcullis control plane CA' }), {
    commonName: webhookUser('worker-1'),
    organizations: [WEBHOOKS_GROUP],
    usage: 'client',
  })
  const admin = issueControlCertificate(pki, { user: 'admin', groups: ['portcullis:admins'] })
  const ungrouped = issueControlCertificate(pki, { user: webhookUser('worker-1'), groups: [] })
  const otherKey = createWebhookTokens(generateTokenKey())
  const rows: readonly (readonly [string, Sent, string, number])[] = [
    ['certificate', { cert: ours }, '/worker-1', 200],
    ['token', { bearer: token }, '/worker-1', 200],
    ['signed token', { bearer: mine }, '/worker-1', 200],
    ['token in the path', {}, `/worker-1/${token}`, 200],
    ['signed token in the path', {}, `/worker-1/${mine}`, 200],
    ['nothing', {}, '/worker-1', 401],
    ['nothing, cell unknown', {}, '/nowhere', 401],
    ['certificate for another cell', { cert: ours }, '/worker-2', 403],
    ['token for another cell', { bearer: token }, '/worker-2', 401],
    ['signed token for another cell', { bearer: mine }, '/worker-2', 403],
    ['path token for another cell', {}, `/worker-2/${token}`, 401],
    ['signed path token for another cell', {}, `/worker-2/${mine}`, 403],
    ['a good path token does not make up for a bad certificate', { cert: stranger }, `/worker-1/${token}`, 401],
    ['a good path token does not make up for a bad bearer', { bearer: 'x' }, `/worker-1/${token}`, 401],
    ['certificate of another CA', { cert: stranger }, '/worker-1', 401],
    ['administrators are no webhooks', { cert: admin }, '/worker-1', 403],
    ['without the group', { cert: ungrouped }, '/worker-1', 403],
    ['upper case', {}, `/worker-1/${token.toUpperCase()}`, 401],
    ['signed with another key', {}, `/worker-1/${otherKey.tokenOf('worker-1')}`, 401],
    ['empty', { bearer: '' }, '/worker-1', 401],
  ]
  for (const [what, sent, path, code] of rows) {
    asked.length = 0
    const answer = await send(path, sent)
    assert.equal(answer.code, code, `${what}: ${answer.text}`)
    assert.equal(asked.length, code === 200 ? 1 : 0, what)
  }
})

test('callers that are revoked: by user all of a cell, by hash one of them', async () => {
  const { pki } = controlPaths(dir)
  const user = webhookUser('worker-1')
  const signed = issueControlToken(readControlTokenKey(pki), {
    user,
    groups: [WEBHOOKS_GROUP],
    ttlSeconds: 60,
    nowMs: Date.now(),
  })
  const ways: Readonly<Record<string, readonly [Sent, string]>> = {
    certificate: [{ cert: ours }, '/worker-1'],
    token: [{ bearer: token }, '/worker-1'],
    signed: [{ bearer: signed }, '/worker-1'],
    path: [{}, `/worker-1/${token}`],
    'signed path': [{}, `/worker-1/${signed}`],
  }
  const letIn = async (): Promise<string[]> => {
    const names: string[] = []
    for (const [name, [sent, path]] of Object.entries(ways)) {
      asked.length = 0
      const { code } = await send(path, sent)
      assert.equal(asked.length, code === 200 ? 1 : 0, name)
      if (code === 200) names.push(name)
      else assert.equal(code, 401, name)
    }
    return names
  }
  const revoke = (entry: object): void => {
    const list = compileRevocation([entry])
    assert.ok(list)
    revoked = (credential) => revokedPart(list, credential)
  }
  assert.deepEqual(await letIn(), Object.keys(ways))
  revoke({ user })
  assert.deepEqual(await letIn(), [])
  revoke({ user: webhookUser('worker-2') })
  assert.deepEqual(await letIn(), Object.keys(ways))
  revoke({ tokenHash: revocableTokenHash(token) })
  assert.deepEqual(await letIn(), ['certificate', 'signed', 'signed path'])
  revoke({ tokenHash: revocableTokenHash(signed) })
  assert.deepEqual(await letIn(), ['certificate', 'token', 'path'])
})

test('paths and methods', async () => {
  const rows: readonly (readonly [string, string, number])[] = [
    ['GET', '/healthz', 200],
    ['GET', '/livez', 200],
    ['GET', '/readyz', 200],
    ['GET', '/worker-1', 405],
    ['PUT', '/worker-1', 405],
    ['DELETE', '/worker-1', 405],
    ['POST', '/', 404],
    ['POST', '/worker-1/', 404],
    ['POST', '//', 404],
    ['POST', `/worker-1/${token}/more`, 404],
    ['POST', '/worker-1/%ff', 404],
    ['POST', '/a/../worker-1', 404],
  ]
  for (const [method, path, code] of rows) {
    assert.equal((await send(path, { method, bearer: token })).code, code, `${method} ${path}`)
  }
  ready = false
  assert.equal((await send('/readyz', { method: 'GET' })).code, 503)
  assert.equal((await send('/livez', { method: 'GET' })).code, 200)
  assert.equal(asked.length, 0)
})

test('a review that is none is 400, and nothing is recorded', async () => {
  const bodies: readonly unknown[] = [
    '',
    '{',
    'null',
    '[]',
    '{"__proto__":{"request":{}}}',
    { request: null },
    { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1', request: null },
    { kind: 'AdmissionReview', apiVersion: 'admission.k8s.io/v1' },
    { ...review(), kind: 'Review' },
    { ...review(), apiVersion: 'admission.k8s.io/v1beta1' },
    review({ uid: '' }),
    review({ uid: 7 }),
    review({ operation: undefined }),
    review({ oldObject: null }),
    review({ oldObject: { metadata: { name: 'web-1', namespace: 'shop' } } }),
    review({ namespace: 'other' }),
    review({ name: 'other' }),
    eviction({ kind: 'Pod' }),
    eviction({}, { object: null }),
    eviction({ metadata: {} }, { name: '', namespace: '' }),
  ]
  for (const body of bodies) {
    const answer = await send('/worker-1', { body, bearer: token })
    assert.equal(answer.code, 400, JSON.stringify(body))
    assert.equal(answer.json.kind, 'Status')
  }
  assert.equal((await send('/worker-1', { body: 'x'.repeat(4 * 1024 * 1024), bearer: token })).code, 413)
  const labels = Object.fromEntries(Array.from({ length: MAX_REVIEW_VALUES }, (_, i) => [i, '']))
  const large = await send('/worker-1', { body: { ...review(), labels }, bearer: token })
  assert.deepEqual([large.code, large.json.reason], [413, 'RequestEntityTooLarge'])
  assert.match(large.json.message, new RegExp(`limit is ${MAX_REVIEW_VALUES} values`))
  assert.equal(asked.length, 0)
  assert.ok(outcomes.every(({ status, cell }) => status === 'HttpError' && cell === 'worker-1'))
  assert.equal(outcomes.length, bodies.length + 2)
})

test('a deletion is evaluated with the content of the review', async () => {
  assert.deepEqual(await ask(review()), { uid: 'review-uid', allowed: true })
  const [{ pod: facts, ...rest } = assert.fail()] = asked
  assert.deepEqual(rest, {
    cell: 'worker-1',
    cause: 'DeletePod',
    via: 'webhook',
    criterion: undefined,
    user: 'alice',
    dryRun: false,
    shadow: false,
    timeoutMs: rest.timeoutMs,
  })
  assert.ok(rest.timeoutMs > 0 && rest.timeoutMs <= 9_500, `${rest.timeoutMs}`)
  assert.equal(`${facts.namespace}/${facts.name} ${facts.uid} ${facts.ready}`, 'shop/web-1 pod-uid true')
  assert.deepEqual(lookedUp, [], 'the review holds the pod')
  assert.deepEqual(
    outcomes.map(({ durationMs: _, ...outcome }) => outcome),
    [{ cell: 'worker-1', cause: 'DeletePod', status: 'AdmittedAll', allowed: true, code: 200 }],
  )
  // One of a collection has no name in the request.
  assert.equal((await ask(review({ name: '' }))).allowed, true)
  assert.equal(asked[1]?.pod.name, 'web-1')
})

test('the caller waits no longer than it says', async () => {
  await ask(review(), '/worker-1?timeout=2s')
  assert.ok((asked[0]?.timeoutMs ?? 0) <= 1_800)
  protection = { ...PROTECTION, timeoutMs: 1_000 }
  await ask(review(), '/worker-1?timeout=30s')
  assert.ok((asked[1]?.timeoutMs ?? 0) <= 1_000)
  // A ledger that never answers.
  verdict = () => new Promise(() => undefined)
  const late = await ask(review(), '/worker-1?timeout=100ms')
  assert.equal(late.allowed, false)
  assert.equal(late.status.code, 503)
  assert.match(late.status.message, /could not be evaluated within/)
})

test('an eviction is evaluated by the current pod, and by the annotation of the Eviction', async () => {
  const annotations = { 'podseidon.kubewharf.io/health-criterion': 'Running' }
  const metadata = { name: 'web-1', namespace: 'shop', annotations }
  assert.equal((await ask(eviction({ metadata }))).allowed, true)
  assert.deepEqual(lookedUp, ['worker-1 shop/web-1'])
  assert.equal(asked[0]?.cause, 'EvictPod')
  assert.equal(asked[0]?.criterion, 'Running')
  assert.equal(asked[0]?.pod.uid, 'pod-uid')

  pods.clear()
  const missing = await ask(eviction())
  assert.deepEqual([missing.allowed, missing.status.code, missing.status.reason], [false, 404, 'NotFound'])

  pods.set('web-1', { broken: true })
  const broken = await ask(eviction())
  assert.equal(broken.status.code, 503)
  assert.match(broken.status.message, /pod shop\/web-1 cannot be read from cell worker-1: connect ECONNREFUSED/)
  assert.equal(asked.length, 1)
})

test('several clusters of a cell have pods of one name: a deletion says which, an eviction has to', async () => {
  const twin = pod()
  twins.set('web-1', { ...twin, metadata: { ...(twin['metadata'] as object), uid: 'another-uid' } })
  const vague = await ask(eviction())
  assert.deepEqual([vague.allowed, asked.length], [false, 0])
  assert.match(vague.status.message, /several clusters of cell worker-1 have a pod shop\/web-1/)
  const exact = eviction({ deleteOptions: { preconditions: { uid: 'another-uid' } } })
  assert.equal((await ask(exact)).allowed, true)
  assert.equal(asked[0]?.pod.uid, 'another-uid')
})

test('an eviction that the API server will refuse by its preconditions reserves nothing', async () => {
  const only = (preconditions: object): JsonObject => eviction({ deleteOptions: { preconditions } })
  assert.equal((await ask(only({ uid: 'pod-uid', resourceVersion: '7' }))).allowed, true)
  for (const condition of [{ uid: 'other' }, { resourceVersion: '6' }]) {
    const answer = await ask(only(condition))
    assert.equal(answer.status.code, 409)
    assert.equal(answer.status.reason, 'Conflict')
  }
  assert.equal(asked.length, 1)
})

test('dry runs are seen wherever they are said', async () => {
  const reviews = [
    review({ dryRun: true }),
    review({ options: { dryRun: ['All'] } }),
    eviction({}, { dryRun: true }),
    eviction({}, { options: { dryRun: ['All'] } }),
    eviction({ deleteOptions: { dryRun: ['All'] } }),
  ]
  for (const body of reviews) await ask(body)
  assert.deepEqual(
    asked.map(({ dryRun }) => dryRun),
    reviews.map(() => true),
  )
})

test('refusals: 429 with reason, causes and how long to wait', async () => {
  verdict = () => Promise.resolve(REJECTED)
  const rejected = await ask(review())
  assert.equal(rejected.allowed, false)
  assert.deepEqual(rejected.status, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: REJECTED.message,
    reason: 'TooManyRequests',
    details: { causes: REJECTED.causes },
    code: 429,
  })
  assert.deepEqual(rejected.auditAnnotations, { 'reject-by-podprotector': 'web' })
  verdict = () => Promise.resolve(RETRY)
  assert.equal((await ask(eviction())).status.details.retryAfterSeconds, 1)
})

test('without a verdict the failure policy decides', async () => {
  verdict = () => Promise.resolve(AWAY)
  const refused = await ask(review())
  assert.deepEqual([refused.allowed, refused.status.code, refused.status.message], [false, 503, AWAY.message])
  protection = { ...PROTECTION, failurePolicy: 'Ignore' }
  const passed = await ask(review())
  assert.equal(passed.allowed, true)
  assert.deepEqual(passed.warnings, [`not protected (failurePolicy Ignore): ${AWAY.message}`])
  protection = PROTECTION
  verdict = () => Promise.reject(new Error('broken'))
  assert.equal((await ask(review())).status.code, 503)
  protection = { ...PROTECTION, shadow: true }
  assert.equal((await ask(review())).allowed, true)
})

test('shadow mode and force-delete allow what would be refused, and report it', async () => {
  const long = `${REJECTED.message} ${'and so on '.repeat(20)}\nline`
  verdict = ({ shadow }) =>
    Promise.resolve({ ...REJECTED, message: long, overridden: shadow ? 'shadow' : 'force-delete' })
  protection = { ...PROTECTION, shadow: true }
  const shadowed = await ask(review())
  assert.equal(shadowed.allowed, true)
  assert.deepEqual(shadowed.auditAnnotations, { 'dry-run': '1', 'reject-by-podprotector': 'web' })
  assert.equal(shadowed.warnings.length, 1)
  assert.match(shadowed.warnings[0], /^not refused \(shadow\): PodProtector shop\/web reports too few/)
  assert.equal(shadowed.warnings[0].length, 120)
  protection = PROTECTION
  const annotations = { 'podseidon.kubewharf.io/force-delete': '' }
  const forced = await ask(review({ oldObject: pod({ annotations }) }))
  assert.equal(forced.allowed, true)
  assert.equal(forced.auditAnnotations['dry-run'], '1')
})

test('what is excluded is not asked about', async () => {
  assert.equal((await ask(review({ namespace: '', oldObject: pod({ namespace: 'left-alone' }) }))).allowed, true)
  assert.equal((await ask(review({ oldObject: pod({ labels: { unguarded: 'yes' } }) }))).allowed, true)
  covered = (namespace) => namespace !== 'shop'
  assert.equal((await ask(review())).allowed, true)
  assert.equal((await ask(eviction())).allowed, true)
  assert.equal(asked.length, 0)
  assert.deepEqual(lookedUp, [], 'no pod is read in vain')
  assert.ok(outcomes.every(({ status }) => status === 'NotRelevant'))
})

test('a terminating pod is allowed, whatever is unreachable', async () => {
  verdict = () => Promise.resolve(AWAY)
  const oldObject = pod({ deletionTimestamp: '2026-01-01T00:00:00Z' })
  assert.equal((await ask(review({ oldObject }))).allowed, true)
  const unknown = await send(`/nowhere/${tokens.tokenOf('nowhere')}`, { body: review({ oldObject }) })
  assert.equal(unknown.json.response.allowed, true)
  assert.equal(asked.length, 0)
})

test('an unknown cell is refused, and nothing recorded', async () => {
  const { code, json } = await send(`/nowhere/${tokens.tokenOf('nowhere')}`)
  assert.equal(code, 200)
  assert.equal(json.response.allowed, false)
  assert.equal(json.response.status.code, 404)
  assert.match(json.response.status.message, /cell "nowhere" is not known here.*portcullis protect uninstall/)
  assert.equal(asked.length, 0)
  assert.equal(outcomes[0]?.cell, '', 'metrics are not made of names that anybody may send')
})

test('anything but deletions of pods is refused with the words of Podseidon', async () => {
  const others = [
    review({ operation: 'UPDATE' }),
    review({ resource: { group: '', version: 'v1', resource: 'services' } }),
    review({ resource: { group: 'x', version: 'v1', resource: 'pods' } }),
    review({ subResource: 'status' }),
    eviction({}, { subResource: 'binding' }),
  ]
  for (const body of others) {
    const { allowed, status } = await ask(body)
    assert.equal(allowed, false)
    assert.equal(status.code, 500)
    assert.equal(
      status.message,
      'Unexpected review subject; only pod deletions and evictions are handled by this webhook',
    )
  }
  assert.equal(asked.length, 0)
})

test('a caller with only a token of the path cannot invent pods', async () => {
  const path = `/worker-1/${token}`
  const forged = review({ oldObject: pod({ uid: 'made-up' }) })
  const answer = await send(path, { body: forged })
  assert.equal(answer.json.response.status.code, 404)
  pods.clear()
  assert.equal((await send(path)).json.response.status.code, 404)
  assert.equal(asked.length, 0)
  pods.set('web-1', pod({ labels: { now: 'yes' } }))
  assert.equal((await send(path)).json.response.allowed, true)
  assert.deepEqual(asked[0]?.pod.labels, { now: 'yes' }, 'evaluated by what is in the cluster')
})

test('a probe is answered without asking the ledger, and only as a dry run', async () => {
  const metadata = { name: 'none', namespace: 'default', labels: { 'protection.portcullis.io/probe': 'none' } }
  const at = { name: 'none', namespace: 'default' }
  const probe = await ask(eviction({ metadata, deleteOptions: { dryRun: ['All'] } }, at))
  assert.equal(probe.status.message, 'probe: cell worker-1 is protected here')
  assert.equal(asked.length, 0)
  pods.set('none', pod({ name: 'none', namespace: 'default' }))
  assert.equal((await ask(eviction({ metadata }, at))).allowed, true)
  assert.equal(asked.length, 1, 'a real eviction is evaluated, whatever its labels')
  pods.set('none', { broken: true })
  const blind = await ask(eviction({ metadata, deleteOptions: { dryRun: ['All'] } }, at))
  assert.equal(blind.status.code, 503)
})

test('many reviews at a time are evaluated at the same time', async () => {
  const waiting: (() => void)[] = []
  const all = 200
  verdict = () =>
    new Promise((resolve) => {
      waiting.push(() => resolve(ADMITTED))
      if (waiting.length === all) for (const go of waiting) go()
    })
  const answers = await Promise.all(Array.from({ length: all }, () => send('/worker-1', { bearer: token })))
  assert.ok(answers.every(({ json }) => json.response.allowed))
})

test('the certificate is of the CA in the data directory, and outlives a restart by its CA', async () => {
  const next = new ProtectionPort({ listen: { host: '127.0.0.1', port: 0 }, hosts: [], dataDir: dir, log })
  assert.equal(next.caPem, port.caPem)
  const { pki } = controlPaths(dir)
  assert.equal(createWebhookTokens(readControlTokenKey(pki)).tokenOf('worker-1'), token)
  await next.close()
})
