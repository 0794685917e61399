import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UpstreamClusterSpec } from '../../api/upstream-cluster/upstream-cluster.ts'
import { buildClusterIndex } from '../cluster/cluster-index.ts'
import { compileCluster } from '../cluster/compile-cluster.ts'
import type { CompiledCluster } from '../cluster/compiled-cluster.ts'
import { ListSizes } from '../list-cost/list-sizes.ts'
import { type ExplainInput, type ExplainOutput, explainRequest, parseExplainLine } from './explain-request.ts'

const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], nonResourceURLs: ['*'] }
const A = 'https://10.0.0.1:6443'
const B = 'https://10.0.0.2:6443'

function cluster(name: string, spec: Partial<UpstreamClusterSpec> = {}): CompiledCluster {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name },
    spec: { servers: [{ endpoint: A }, { endpoint: B }], dispatchPolicies: [{ rules: [ALL] }], ...spec },
  }
  return compileCluster({ object, revision: '1' })
}

function ask(spec: Partial<UpstreamClusterSpec>, input: Partial<ExplainInput> = {}, nowMs = 0): ExplainOutput {
  const request = { host: 'prod', method: 'GET', target: '/api/v1/pods', user: 'alice', ...input }
  return explainRequest(buildClusterIndex([cluster('prod', spec)]), request, nowMs)
}

/** Decision, code and reason in one word. */
function verdict(output: ExplainOutput): string {
  return output.decision === 'forward' ? `forward ${output.code}` : `${output.code} ${output.reason}`
}

test('the two-user example: one is limited, the other exempt', () => {
  const spec: Partial<UpstreamClusterSpec> = {
    flowControl: {
      flowControlSchemas: [
        { name: 'slow', tokenBucket: { qps: 1, burst: 2 } },
        { name: 'free', exempt: {} },
      ],
    },
    dispatchPolicies: [
      {
        rules: [{ ...ALL, users: ['system:kube-controller-manager'] }],
        flowControlSchemaName: 'free',
        upstreamSubset: [B],
      },
      {
        rules: [
          { ...ALL, verbs: ['watch'] },
          { ...ALL, verbs: ['list'], resources: ['pods'] },
        ],
        flowControlSchemaName: 'slow',
      },
      { rules: [ALL] },
    ],
  }
  const target = '/api/v1/namespaces/x/pods?fieldSelector=metadata.name%3Da&labelSelector=b'
  assert.deepEqual(ask(spec, { target }), {
    requestInfo: {
      isResourceRequest: true,
      verb: 'list',
      apiPrefix: 'api',
      apiGroup: '',
      apiVersion: 'v1',
      namespace: 'x',
      resource: 'pods',
      subresource: '',
      name: 'a',
      path: '/api/v1/namespaces/x/pods',
      fieldSelector: 'metadata.name=a',
      labelSelector: 'b',
    },
    cluster: 'prod',
    policy: 1,
    rule: 1,
    flowControl: 'slow',
    endpoints: [A, B],
    share: { source: 'user "alice" of cluster "prod"', weight: 1 },
    decision: 'forward',
    code: 200,
    reason: '',
    message: '',
  })
  const exempt = ask(spec, { target, user: 'system:kube-controller-manager' })
  assert.deepEqual([exempt.policy, exempt.rule, exempt.flowControl, exempt.endpoints], [0, 0, 'free', [B]])
  assert.equal(ask(spec, { method: 'POST' }).flowControl, null)
})

test('the keys and their order are fixed', () => {
  const keys = [
    'requestInfo',
    'cluster',
    'policy',
    'rule',
    'flowControl',
    'endpoints',
    'share',
    'decision',
    'code',
    'reason',
    'message',
  ]
  assert.deepEqual(Object.keys(ask({})), keys)
  assert.deepEqual(Object.keys(ask({}, { host: 'nobody' })), keys)
})

test('whose share a request takes, and how large it is', () => {
  const weights = [
    { weight: 5, users: ['system:kube-*'] },
    { weight: 3, userGroups: ['ops'], users: ['-bob'] },
  ]
  const share = (input: Partial<ExplainInput>): unknown => ask({ shares: { weights } }, input).share
  const of = (name: string, weight: number): object => ({ source: `user "${name}" of cluster "prod"`, weight })
  assert.deepEqual(share({ user: 'system:kube-scheduler', groups: ['ops'] }), of('system:kube-scheduler', 5))
  assert.deepEqual(share({ user: 'alice', groups: ['ops'] }), of('alice', 3))
  assert.deepEqual(share({ user: 'bob', groups: ['ops'] }), of('bob', 1))
  // The original user is charged.
  assert.deepEqual(share({ user: 'alice', groups: ['ops'], impersonator: 'carol' }), of('carol', 1))
  assert.deepEqual(share({ user: '', remoteAddress: '10.1.2.3' }), { source: 'address 10.1.2.3', weight: 1 })
  assert.equal(share({ user: '' }), null)
})

test('unknown cluster: 404 that names the host; without a host, a hint', () => {
  const unknown = ask({}, { host: 'Nobody:8443' })
  assert.equal(verdict(unknown), '404 NotFound')
  assert.match(unknown.message, /"nobody"/)
  assert.deepEqual([unknown.cluster, unknown.policy, unknown.rule, unknown.endpoints], [null, null, null, []])
  assert.equal(unknown.requestInfo?.resource, 'pods')
  assert.match(ask({}, { host: '' }).message, /no host is given/)
  assert.match(ask({}, { target: '/clusters/nope/api' }).message, /"\/clusters\/nope"/)
})

test('lookup by path prefix, default, address and port', () => {
  assert.equal(ask({}, { host: '', target: '/clusters/prod/api/v1/nodes' }).requestInfo?.path, '/api/v1/nodes')
  assert.equal(ask({ default: true }, { host: '' }).cluster, 'prod')
  assert.equal(ask({ addresses: { ips: ['10.0.0.9'] } }, { host: '10.0.0.9:6443' }).cluster, 'prod')
  assert.equal(ask({ addresses: { ips: ['fd00::9'] } }, { host: '[FD00::9]' }).cluster, 'prod')
  assert.equal(ask({ addresses: { ports: [9443] } }, { host: 'vip:9443' }).cluster, 'prod')
  assert.equal(ask({ addresses: { ports: [9443] } }, { host: '[::1]:9443' }).cluster, 'prod')
})

test('a target that cannot be parsed', () => {
  const broken = ask({}, { target: '/api/v1/pods/%zz' })
  assert.deepEqual([verdict(broken), broken.requestInfo, broken.cluster], ['400 BadRequest', null, 'prod'])
  assert.equal(verdict(ask({}, { target: '/api/v1/watch' })), '500 InternalError')
})

// KubeGateway answers 500, and has no deny action.
test('no policy is 403, and so is a policy that denies', () => {
  const bobOnly = [{ rules: [{ ...ALL, users: ['bob'] }] }]
  const none = ask({ dispatchPolicies: bobOnly })
  assert.deepEqual([verdict(none), none.policy, none.rule], ['403 Forbidden', null, null])
  assert.match(none.message, /User "alice" cannot list resource "pods".*no dispatch policy/)
  const deny = { rules: [ALL], action: 'Deny' } as const
  const denied = ask({ dispatchPolicies: [deny] })
  assert.deepEqual([verdict(denied), denied.policy, denied.rule], ['403 Forbidden', 0, 0])
  assert.match(denied.message, /dispatchPolicies\[0\]\.rules\[0\]/)
  const shadow = ask({ dispatchPolicies: [{ ...deny, shadow: true }] })
  assert.equal(verdict(shadow), 'forward 200')
  assert.match(shadow.message, /^dispatch-action in shadow mode would refuse: .*denied/)
})

test('access list: before everything that policies say', () => {
  const accessControl = { deny: [{ name: 'bots', userAgents: ['bot*'] }], allow: [{ sourceIPs: ['10.0.0.0/8'] }] }
  const dispatchPolicies = [{ rules: [ALL], action: 'Deny' as const }]
  const denied = ask({ accessControl, dispatchPolicies }, { userAgent: 'bot/1', remoteAddress: '10.1.1.1' })
  assert.equal(verdict(denied), '403 Forbidden')
  assert.match(denied.message, /"bots"/)
  assert.equal(verdict(ask({ accessControl }, { remoteAddress: '::ffff:10.1.1.1' })), 'forward 200')
  assert.match(ask({ accessControl }, { remoteAddress: '192.0.2.1' }).message, /allow list/)
  assert.equal(
    verdict(ask({ accessControl: { ...accessControl, shadow: true } }, { userAgent: 'bot/1' })),
    'forward 200',
  )
})

test('degrade: 503 with reason and expiry, until the expiry', () => {
  const degrade = { mode: 'Freeze', reason: 'etcd restore', expiresAt: '2030-01-01T00:00:00Z' } as const
  const frozen = ask({ degrade })
  assert.equal(verdict(frozen), '503 ServiceUnavailable')
  assert.match(frozen.message, /Freeze.*2030-01-01T00:00:00Z.*etcd restore/)
  assert.equal(verdict(ask({ degrade }, { target: '/readyz' })), 'forward 200')
  assert.equal(verdict(ask({ degrade: { ...degrade, exempt: [ALL] } })), 'forward 200')
  assert.equal(verdict(ask({ degrade }, {}, Date.parse(degrade.expiresAt))), 'forward 200')
  assert.equal(verdict(ask({ degrade: { ...degrade, shadow: true } })), 'forward 200')
})

test('what no traffic is needed for: a limit of zero, and no endpoint left', () => {
  const zero = { name: 'blackhole', maxRequestsInflight: { max: 0 } }
  const dispatchPolicies = [{ rules: [ALL], flowControlSchemaName: 'blackhole' }]
  assert.equal(verdict(ask({ flowControl: { flowControlSchemas: [zero] }, dispatchPolicies })), '429 TooManyRequests')
  const slots = { ...zero, maxRequestsInflight: { max: 1 } }
  assert.equal(verdict(ask({ flowControl: { flowControlSchemas: [slots] }, dispatchPolicies })), 'forward 200')
  const servers = [
    { endpoint: A, disabled: true },
    { endpoint: B, weight: 0 },
  ]
  assert.equal(verdict(ask({ servers })), '503 ServiceUnavailable')
  assert.deepEqual(ask({ servers: [...servers, { endpoint: 'https://c' }] }).endpoints, ['https://c'])
})

test('who the user is, when only a name is given', () => {
  const asks = (userGroups: string[], input: Partial<ExplainInput>): string =>
    verdict(ask({ dispatchPolicies: [{ rules: [{ ...ALL, userGroups }] }] }, input))
  assert.equal(asks(['system:authenticated'], {}), 'forward 200')
  assert.equal(asks(['system:authenticated'], { groups: ['dev'] }), 'forward 200')
  assert.equal(asks(['dev'], { groups: ['dev'] }), 'forward 200')
  assert.equal(asks(['system:unauthenticated'], { user: '' }), 'forward 200')
  assert.equal(asks(['system:unauthenticated'], { user: 'system:anonymous' }), 'forward 200')
  assert.equal(asks(['system:authenticated'], { user: 'system:anonymous' }), '403 Forbidden')
  const account = { user: 'system:serviceaccount:ci:bot' }
  assert.equal(asks(['system:serviceaccounts:ci'], account), 'forward 200')
  assert.equal(asks(['system:serviceaccounts'], account), 'forward 200')
  assert.equal(asks(['system:serviceaccounts'], { ...account, groups: ['dev'] }), '403 Forbidden')
  assert.equal(asks(['system:serviceaccounts'], { user: 'system:serviceaccount:ci' }), '403 Forbidden')
})

test('a cluster without anonymous users answers 401 to one', () => {
  const authentication = { anonymous: false }
  assert.equal(verdict(ask({ authentication }, { user: '' })), '401 Unauthorized')
  assert.equal(verdict(ask({ authentication })), 'forward 200')
})

test('a line of the access log is a question; an invalid request says why', () => {
  const line = { time: 'x', cluster: 'c', method: 'GET', target: '/', user: null, groups: ['g'], code: 200, host: 'h' }
  assert.deepEqual(parseExplainLine(JSON.stringify(line)), { method: 'GET', target: '/', groups: ['g'], host: 'h' })
  const rows: readonly (readonly [string, RegExp])[] = [
    ['{', /not JSON/],
    ['[]', /not a JSON object/],
    ['null', /not a JSON object/],
    ['{"target":"/"}', /"method"/],
    ['{"method":"GET"}', /"target"/],
    ['{"method":"GET","target":7}', /"target"/],
    ['{"method":"GET","target":"/","host":7}', /"host"/],
    ['{"method":"GET","target":"/","groups":"g"}', /"groups"/],
    ['{"method":"GET","target":"/","groups":[1]}', /"groups"/],
  ]
  for (const [text, error] of rows) {
    const result = parseExplainLine(text)
    assert.ok('error' in result, text)
    assert.match(result.error, error)
  }
})

test('deletions of pods: PodProtectors are asked, where the cluster has podProtection', () => {
  const podProtection = { cell: 'east', excludedNamespaces: ['kube-system'] }
  const note = (method: string, target: string, spec: Partial<UpstreamClusterSpec> = { podProtection }): string =>
    ask(spec, { method, target }).message
  const pods = '/api/v1/namespaces/shop/pods'
  const asked = 'PodProtectors are asked (cell east)'
  assert.equal(note('DELETE', `${pods}/web-1`), asked)
  assert.equal(note('DELETE', pods), asked)
  assert.equal(note('POST', `${pods}/web-1/eviction`), asked)
  for (const [method, target] of [
    ['GET', `${pods}/web-1`],
    ['POST', pods],
    ['PUT', `${pods}/web-1/status`],
    ['DELETE', '/api/v1/namespaces/kube-system/pods/dns'],
    ['DELETE', '/apis/metrics.k8s.io/v1/namespaces/shop/pods/web-1'],
    ['DELETE', '/api/v1/namespaces/shop'],
  ] as const) {
    assert.equal(note(method, target), '', `${method} ${target}`)
  }
  assert.equal(note('DELETE', `${pods}/web-1`, {}), '')
  const shadow = note('DELETE', `${pods}/web-1`, { podProtection: { shadow: true } })
  assert.equal(shadow, 'PodProtectors are asked (cell prod, shadow mode: they refuse nothing)')
  const frozen = ask({ podProtection, degrade: { mode: 'Freeze' } }, { method: 'DELETE', target: `${pods}/web-1` })
  assert.ok(!frozen.message.includes('PodProtectors'), 'refused before anybody is asked')
})

test('a request that no connection would let in is refused as the gateway refuses it', () => {
  const malformed: [Partial<ExplainInput>, string][] = [
    [{ target: '/api/v1/pods x' }, 'the request target is empty or has a space'],
    [{ host: 'alice@prod' }, 'the host is malformed'],
    [{ host: 'prod/x' }, 'the host is malformed'],
  ]
  for (const [input, message] of malformed) {
    const output = ask({}, input)
    assert.deepEqual([verdict(output), output.message, output.cluster], ['400 BadRequest', message, null])
  }
})

test('a user who cannot be told to upstream exactly is not served', () => {
  for (const user of [' alice', 'a\nb']) assert.equal(verdict(ask({}, { user })), '401 Unauthorized')
  assert.equal(verdict(ask({}, { groups: ['dev '] })), '401 Unauthorized')
})

test('lists without a limit: what the guard would say, by what is known of their size', () => {
  const listGuard = { maxBytesUnlimited: 1_000_000 }
  const note = 'listGuard refuses it when the list is known to be larger than 1000000 bytes'
  assert.equal(ask({ listGuard }).message, note)
  assert.equal(ask({ listGuard: { ...listGuard, shadow: true } }).message, note.replace('refuses', 'warns about'))
  for (const input of [
    { target: '/api/v1/pods?limit=500' },
    { target: '/api/v1/pods?watch=1' },
    { target: '/api/v1/pods/a' },
    { user: 'system:kube-controller-manager' },
    { user: 'system:node:a', groups: ['system:nodes'] },
  ]) {
    assert.equal(ask({ listGuard }, input).message, '', JSON.stringify(input))
  }
  assert.equal(ask({}).message, '')

  const lists = new ListSizes()
  const key = { apiGroup: '', resource: 'pods', namespace: '', shape: '' }
  lists.learn(key, key, { bytes: 2e6, partial: false, items: 0, itemBytes: 0, nowMs: 0 })
  const index = buildClusterIndex([cluster('prod', { listGuard })])
  const request = { host: 'prod', method: 'GET', target: '/api/v1/pods', user: 'alice', userAgent: 'agent/1' }
  for (const nowMs of [5000, 7_200_000]) {
    const known = explainRequest(index, request, nowMs, () => lists)
    assert.equal(verdict(known), nowMs === 5000 ? '429 TooManyRequests' : 'forward 200')
    if (nowMs === 5000)
      assert.match(known.message, /^User "alice" \(agent\/1\) lists all "pods".*2\.0 MB, as of 5 s ago/)
  }
  assert.equal(
    lists.find({ apiGroup: '', resource: 'pods', namespace: '' }, { shape: '' })?.relearnMs,
    0,
    'asking changes nothing',
  )
})
