// The LIST guard: exemptions, its messages, and that old sizes are learned again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListSize } from '../../api/list-request.ts'
import type { UpstreamClusterSpec } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../cluster/compile-cluster.ts'
import type { CompiledCluster, CompiledListGuard } from '../cluster/compiled-cluster.ts'
import { listRequestOf } from '../list-cost/list-request.ts'
import { ListSizes } from '../list-cost/list-sizes.ts'
import { parseRequestInfo, type RequestInfo } from '../request/request-info.ts'
import { checkList, isExemptFromGuard, listTooLargeMessage, mayRelearn, RELEARN_MS } from './list-guard.ts'

const LISTS = { verbs: ['list'], apiGroups: ['*'], resources: ['*'] }

function cluster(spec: Partial<UpstreamClusterSpec> = {}): CompiledCluster & { listGuard: CompiledListGuard } {
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1' }],
      dispatchPolicies: [{ rules: [LISTS] }],
      listGuard: { maxBytesUnlimited: 1_000_000, exempt: [{ ...LISTS, users: ['backup-*'] }] },
      degrade: { exempt: [{ ...LISTS, userGroups: ['operators'] }] },
      ...spec,
    },
  }
  const compiled = compileCluster({ object, revision: '1' })
  return { ...compiled, listGuard: compiled.listGuard ?? assert.fail() }
}

function infoOf(target: string): RequestInfo {
  const info = parseRequestInfo('GET', target)
  assert.ok(!('failure' in info))
  return info
}

const NAMESPACE_CONTROLLER = 'system:serviceaccount:kube-system:namespace-controller'
// [user, groups, user agent, exempt]
const WHO: readonly (readonly [string, string[], string, boolean])[] = [
  ['alice', ['system:authenticated'], 'kubectl/v1.36', false],
  ['alice', ['system:masters'], 'kubectl/v1.36', false],
  ['alice', ['operators'], 'kubectl/v1.36', true],
  ['backup-1', [], '', true],
  ['system:node:a', ['system:nodes'], 'kubelet/v1.36', true],
  ['system:node:a', [], 'kubelet/v1.36', false],
  ['system:kube-controller-manager', [], 'x', true],
  ['system:kube-scheduler', [], 'x', true],
  ['system:apiserver', [], 'x', true],
  ['system:kube-proxy', [], 'x', false],
  [NAMESPACE_CONTROLLER, [], 'kube-controller-manager/v1.36 (linux/amd64)', true],
  [NAMESPACE_CONTROLLER, [], 'agent/1', false],
  ['system:serviceaccount:monitoring:agent', [], 'kube-controller-manager/v1.36', false],
]
for (const [name, groups, userAgent, exempt] of WHO) {
  test(`${name} ${groups.join()} with ${userAgent}: ${exempt ? '' : 'not '}exempt`, () => {
    const user = { name, uid: '', groups, extra: {} }
    assert.equal(isExemptFromGuard(cluster(), infoOf('/api/v1/pods'), user, userAgent), exempt)
  })
}

test('the message is as long as a client can read, whatever the names are', () => {
  const user = { name: 'u'.repeat(100_000), uid: '', groups: [], extra: {} }
  const { listGuard } = cluster()
  const size: ListSize = {
    apiGroup: 'example.com',
    resource: 'things',
    namespace: 'shop',
    shape: '',
    bytes: 200_000_000,
    items: 40_000,
    itemBytes: 5000,
    seenMs: 0,
    relearnMs: 0,
  }
  const info = infoOf('/apis/example.com/v1/namespaces/shop/things')
  const long = listTooLargeMessage('prod', listGuard, info, user, 'a'.repeat(100_000), size, 0)
  assert.ok(long.length < 1200, String(long.length))
  const alice = { ...user, name: 'alice' }
  for (const [ageMs, age] of [
    [-5, '0 s'],
    [12_000, '12 s'],
    [300_000, '5 min'],
    [3 * 3_600_000, '3 h'],
  ] as const) {
    assert.equal(
      listTooLargeMessage('prod', listGuard, info, alice, 'kubectl/v1', size, ageMs),
      'User "alice" (kubectl/v1) lists all "things.example.com" in namespace "shop" of cluster "prod" without a limit: ' +
        `200 MB, 40000 items, as of ${age} ago, and spec.listGuard allows 1.0 MB; ` +
        'list with limit (500) and continue, watch, or set resourceVersion=0',
    )
  }
})

test('what excludes a little is as large as the whole; what a selector picks is not refused for another value of it', () => {
  const sizes = new ListSizes()
  for (const shape of ['', 'labels', 'labels!', 'spec.nodeName', 'status.phase!']) {
    const seen = { bytes: 2e6, partial: false, items: 0, itemBytes: 0, nowMs: 0 }
    sizes.learn({ apiGroup: '', resource: 'pods', namespace: '' }, { shape }, seen)
  }
  const verdict = (query: string): string | undefined => {
    const target = `/api/v1/pods${query}`
    const list = listRequestOf(infoOf(target), target, sizes)
    return list && checkList(cluster().listGuard, list)
  }
  assert.equal(verdict(''), 'large')
  assert.equal(verdict('?labelSelector=!app'), 'large')
  assert.equal(verdict('?fieldSelector=status.phase!%3DFailed'), 'large')
  assert.equal(verdict('?labelSelector=app%3Da'), 'passed')
  assert.equal(verdict('?fieldSelector=spec.nodeName%3Da'), 'passed')
  assert.equal(verdict('?fieldSelector=spec.host%3Da'), 'unknown')
  assert.equal(verdict('?limit=500'), undefined)
  assert.equal(verdict('?watch=1'), undefined)
})

test('after an hour one a minute passes, to show what is true now', () => {
  const size = { seenMs: 0, relearnMs: 0 } as ListSize
  assert.ok(!mayRelearn(size, RELEARN_MS - 1))
  assert.ok(mayRelearn(size, RELEARN_MS))
  const passing = { ...size, relearnMs: RELEARN_MS }
  assert.ok(!mayRelearn(passing, RELEARN_MS + 59_999))
  assert.ok(mayRelearn(passing, RELEARN_MS + 60_000))
  assert.ok(!mayRelearn({ ...passing, seenMs: RELEARN_MS + 1 }, RELEARN_MS + 60_000))
})
