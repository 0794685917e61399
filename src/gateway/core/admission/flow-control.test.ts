// The reserved lane: requests that pass although a limit is reached.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FlowControlSchema } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileCluster } from '../cluster/compile-cluster.ts'
import { freshLimits } from '../limits/limits.ts'
import { parseRequestInfo } from '../request/request-info.ts'
import type { Admission } from './filter.ts'
import { flowControl } from './flow-control.ts'

const ALL = { verbs: ['*'], apiGroups: ['*'], resources: ['*'] }

/** The filter's answer when the limit is reached. */
function asked(method: string, target: string, name: string, groups: string[], limit: object, watch = false): string {
  const schema: FlowControlSchema = { name: 'a', ...limit }
  const object = {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name: 'prod' },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1' }],
      flowControl: { flowControlSchemas: [schema] },
      dispatchPolicies: [{ rules: [ALL], flowControlSchemaName: 'a' }],
      degrade: { exempt: [{ ...ALL, users: ['operator'] }] },
    },
  }
  const cluster = compileCluster({ object, revision: '1' })
  const [policy = assert.fail()] = cluster.policies
  const limits = freshLimits()
  const admission = (user: string, path: string): Admission => {
    const info = parseRequestInfo(method, path)
    assert.ok(!('failure' in info))
    return {
      cluster,
      limits,
      policy,
      rule: 0,
      info,
      user: { name: user, uid: '', groups, extra: {} },
      userAgent: '',
      remoteAddress: '',
      isWatch: watch,
      isUpgrade: false,
      list: undefined,
      moment: { nowMs: 0, monotonicMs: 0 },
      passed: 0,
      reserved: false,
      held: undefined,
      warnings: [],
      shadow: [],
    }
  }
  flowControl.check(admission('somebody', '/api/v1/nodes'))
  const last = admission(name, target)
  const refusal = flowControl.check(last)
  if (last.reserved) assert.deepEqual([refusal, last.held], [undefined, undefined])
  return last.reserved ? 'reserved' : refusal === undefined ? 'admitted' : refusal.refused
}

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a'
const STATUS = '/api/v1/nodes/a/status'
const NODE = ['system:nodes']
const SLOT = { maxRequestsInflight: { max: 1 } }
const ROWS: readonly (readonly [string, string, string, string[], object, string])[] = [
  ['PUT', LEASE, 'system:node:a', NODE, SLOT, 'reserved'],
  ['GET', LEASE, 'system:node:a', NODE, SLOT, 'reserved'],
  ['PATCH', STATUS, 'system:node:a', NODE, SLOT, 'reserved'],
  ['PUT', LEASE, 'system:node:a', NODE, { tokenBucket: { qps: 1, burst: 1 } }, 'reserved'],
  ['POST', LEASE.slice(0, -2), 'system:node:a', NODE, SLOT, 'reserved'],
  // Another node's lease, another user, or another object.
  ['PUT', LEASE, 'system:node:b', NODE, SLOT, 'too-many-in-flight'],
  ['PUT', LEASE, 'system:node:a', [], SLOT, 'too-many-in-flight'],
  ['PUT', LEASE, 'alice', NODE, SLOT, 'too-many-in-flight'],
  ['DELETE', LEASE, 'system:node:a', NODE, SLOT, 'too-many-in-flight'],
  ['PUT', LEASE.replace('kube-node-lease', 'x'), 'system:node:a', NODE, SLOT, 'too-many-in-flight'],
  ['GET', '/api/v1/pods', 'system:node:a', NODE, SLOT, 'too-many-in-flight'],
  ['PUT', '/api/v1/nodes/a', 'system:node:a', NODE, SLOT, 'too-many-in-flight'],
  // spec.degrade.exempt, for reads and writes.
  ['GET', '/api/v1/pods', 'operator', [], SLOT, 'reserved'],
  ['DELETE', '/api/v1/namespaces/x/pods/y', 'operator', [], SLOT, 'reserved'],
  ['GET', '/api/v1/pods', 'alice', [], { tokenBucket: { qps: 1, burst: 1 } }, 'rate-limited'],
  // A limit of 0 blocks everything.
  ['PUT', LEASE, 'system:node:a', NODE, { maxRequestsInflight: { max: 0 } }, 'too-many-in-flight'],
  ['GET', '/api/v1/pods', 'operator', [], { maxRequestsInflight: { max: 0 } }, 'too-many-in-flight'],
]
for (const [method, target, user, groups, limit, expected] of ROWS) {
  test(`${method} ${target} by ${user} ${groups.join()} under ${JSON.stringify(limit)}: ${expected}`, () => {
    assert.equal(asked(method, target, user, groups, limit), expected)
  })
}

test('an operator opens a watch although there are as many as may be', () => {
  const limit = { exempt: {}, maxWatches: 1 }
  assert.equal(asked('GET', '/api/v1/pods?watch=1', 'alice', [], limit, true), 'too-many-watches')
  assert.equal(asked('GET', '/api/v1/pods?watch=1', 'operator', [], limit, true), 'reserved')
})
