import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import type { UserInfo } from '../../../kube/api/user.ts'
import { DEGRADE_MODES, type DegradeMode } from '../../api/upstream-cluster/degrade-modes.ts'
import type { Degrade } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileDegrade } from '../cluster/compile-settings.ts'
import { parseRequestInfo } from '../request/request-info.ts'
import { checkDegrade, degradeMessage, effectiveMode } from './degrade.ts'

const ALICE: UserInfo = { name: 'alice', uid: '', groups: ['system:authenticated'], extra: {} }
const NODE: UserInfo = { name: 'system:node:n1', uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
const USERS = { alice: ALICE, bob: { ...ALICE, name: 'bob' }, kubelet: NODE } as const

function check(degrade: Degrade, method: string, target: string, user = ALICE, nowMs = 0): string {
  const info = parseRequestInfo(method, target)
  assert.ok(!('failure' in info), target)
  return checkDegrade(compileDegrade(degrade, false), info, user, 'agent/1', nowMs)
}

const AUTHN = '/apis/authentication.k8s.io/v1'
const AUTHZ = '/apis/authorization.k8s.io/v1'

/**
 * On the way back from an incident, what passes already keeps passing: strictest first. test/repository/docs.test.ts checks that
 * docs/degrade.md has this order.
 */
const LADDER = DEGRADE_MODES.toReversed()

/** User, request, then the strictest mode that admits it; test/degrade/degrade.test.ts sends the same requests to a gateway. */
const ROWS = JSON.parse(
  readFileSync(new URL('../../../../test/data/degrade-requests.json', import.meta.url), 'utf8'),
) as readonly [keyof typeof USERS, string, string, DegradeMode][]

test('what each mode lets through', () => {
  for (const [user, method, target, strictest] of ROWS) {
    const request = `${user} ${method} ${target}`
    for (const [rung, mode] of LADDER.entries()) {
      const expected = rung >= LADDER.indexOf(strictest) ? 'pass' : 'refuse'
      assert.equal(check({ mode }, method, target, USERS[user]), expected, `${mode} ${request}`)
    }
    assert.equal(check({}, method, target, USERS[user]), 'pass', `default ${request}`)
  }
  const decisive = new Set(ROWS.map(([, , , strictest]) => strictest))
  for (const mode of LADDER) assert.equal(decisive.has(mode), mode !== 'Off', `requests that ${mode} adds`)
})

test('a node reads nodes and its CSINode while only heartbeats pass', () => {
  const heartbeats = { mode: 'HeartbeatsOnly' } as const
  for (const target of [
    '/api/v1/nodes/n1',
    '/api/v1/nodes',
    '/api/v1/nodes?watch=1',
    '/apis/storage.k8s.io/v1/csinodes/n1',
  ]) {
    assert.equal(check(heartbeats, 'GET', target, NODE), 'pass', target)
    assert.equal(check(heartbeats, 'GET', target, ALICE), 'refuse', target)
  }
  for (const target of ['/api/v1/nodes/n1/proxy', '/api/v1/pods', '/apis/example.com/v1/nodes']) {
    assert.equal(check(heartbeats, 'GET', target, NODE), 'refuse', target)
  }
  assert.equal(check(heartbeats, 'POST', '/api/v1/nodes', NODE), 'refuse')
})

test('each mode lets through all that the stricter one does, for every request and user', () => {
  const word = fc.constantFrom(
    'pods',
    'nodes',
    'namespaces',
    'events',
    'leases',
    'csinodes',
    'secrets',
    'n1',
    'x',
    'tokenreviews',
  )
  const path = fc.oneof(
    fc.constantFrom(...ROWS.map(([, , target]) => target)),
    fc.constantFrom('/', '/readyz', '/healthz/etcd', '/version', '/metrics', '/openapi/v3', '/apis', '/logs/a'),
    fc
      .tuple(
        fc.constantFrom(
          '/api/v1',
          '/apis/coordination.k8s.io/v1',
          '/apis/storage.k8s.io/v1',
          '/apis/events.k8s.io/v1',
          AUTHN,
          AUTHZ,
        ),
        fc.constantFrom('', '/namespaces/x', '/namespaces/kube-node-lease', '/watch', '/proxy'),
        fc.array(fc.oneof(word, fc.constantFrom('status', 'log', 'exec', 'proxy', 'binding', 'eviction')), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.constantFrom('', '?watch=1', '?fieldSelector=metadata.name%3Dn1'),
      )
      .map(([api, namespace, rest, query]) => `${api}${namespace}/${rest.join('/')}${query}`),
  )
  const method = fc.constantFrom('GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE')
  const passes = new Map(LADDER.map((mode) => [mode, 0]))
  fc.assert(
    fc.property(method, path, fc.constantFrom(ALICE, NODE), (verb, target, user) => {
      const info = parseRequestInfo(verb, target)
      if ('failure' in info) return
      const allowed = LADDER.map((mode) => check({ mode }, verb, target, user) === 'pass')
      for (const [i, mode] of LADDER.entries()) {
        if (allowed[i] === true) passes.set(mode, (passes.get(mode) ?? 0) + 1)
        assert.ok(allowed[i] !== true || allowed[i + 1] !== false, `${mode}, but not the next: ${verb} ${target}`)
      }
    }),
    { numRuns: 3_000 },
  )
  const counts = LADDER.map((mode) => passes.get(mode) ?? 0)
  for (const [i, count] of counts.entries()) {
    // For single requests Off admits the same as Limited.
    if (LADDER[i] === 'Off') assert.equal(count, counts[i - 1])
    else assert.ok(count > (counts[i - 1] ?? 0), `${LADDER[i]}: ${counts}`)
  }
})

/** Modes that refuse some requests. */
const MODES = LADDER.filter((mode) => mode !== 'Off' && mode !== 'Limited')

test('health endpoints pass in every mode; what only begins like one does not', () => {
  for (const mode of MODES) {
    for (const target of [
      '/healthz',
      '/livez',
      '/readyz?verbose',
      '/readyz/etcd',
      '/livez/',
      '/version',
      '/version/',
    ]) {
      assert.equal(check({ mode }, 'GET', target), 'pass', `${mode} ${target}`)
    }
  }
  for (const target of ['/healthzz', '/versions', '/version/x', '/x/healthz', '/api/v1/healthz', '/']) {
    assert.equal(check({ mode: 'Freeze' }, 'GET', target), 'refuse', target)
  }
  assert.equal(check({ mode: 'Freeze' }, 'POST', '/healthz'), 'refuse')
})

test('what is upgraded passes the strict modes only as a watch', () => {
  const vm = '/apis/subresources.kubevirt.io/v1/namespaces/x/virtualmachineinstances/vm'
  const rows: readonly [target: string, strictest: DegradeMode][] = [
    [`${vm}/console`, 'NoDisruption'],
    [`${vm}/vnc`, 'NoDisruption'],
    ['/apis/subresources.kubevirt.io/v1/watch/namespaces/x/virtualmachineinstances/vm/console', 'NoDisruption'],
    ['/api/v1/namespaces/x/pods/p/log?follow=true', 'NoDisruption'],
    ['/api/v1/namespaces/x/pods/p/exec', 'NoDisruption'],
    ['/readyz', 'NoDisruption'],
    ['/x', 'NoDisruption'],
    ['/api/v1/namespaces/x/pods?watch=1', 'ReadOnly'],
    ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?watch=1', 'HeartbeatsOnly'],
  ]
  const exempt = [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], users: ['alice'], nonResourceURLs: ['*'] }]
  for (const [target, strictest] of rows) {
    const info = parseRequestInfo('GET', target)
    assert.ok(!('failure' in info))
    for (const [rung, mode] of LADDER.entries()) {
      const expected = rung >= LADDER.indexOf(strictest) ? 'pass' : 'refuse'
      assert.equal(
        checkDegrade(compileDegrade({ mode }, false), info, ALICE, '', 0, true),
        expected,
        `${mode} ${target}`,
      )
      const lane = mode === 'Off' ? 'pass' : 'exempt'
      assert.equal(checkDegrade(compileDegrade({ mode, exempt }, false), info, ALICE, '', 0, true), lane, target)
    }
  }
})

test('exempt rules are the reserved lane', () => {
  const exempt = [{ verbs: ['*'], apiGroups: ['*'], resources: ['pods'], users: ['alice'] }]
  for (const mode of MODES) {
    assert.equal(check({ mode, exempt }, 'DELETE', '/api/v1/namespaces/x/pods/p'), 'exempt')
    assert.equal(check({ mode, exempt }, 'DELETE', '/api/v1/namespaces/x/pods/p', USERS.bob), 'refuse')
  }
  assert.equal(check({ mode: 'Off', exempt }, 'DELETE', '/api/v1/namespaces/x/pods/p'), 'pass')
})

test('a mode ends at its expiry', () => {
  const degrade = { mode: 'Freeze', expiresAt: '2030-01-01T00:00:00Z' } as const
  const expiry = Date.parse(degrade.expiresAt)
  assert.equal(check(degrade, 'GET', '/api/v1/pods', ALICE, expiry - 1), 'refuse')
  assert.equal(check(degrade, 'GET', '/api/v1/pods', ALICE, expiry), 'pass')
  assert.equal(effectiveMode(compileDegrade(degrade, false), expiry), 'Off')
  assert.equal(effectiveMode(compileDegrade({ mode: 'Freeze' }, false), Number.MAX_SAFE_INTEGER), 'Freeze')
})

test('the message names cluster, mode, reason and expiry', () => {
  const degrade = compileDegrade(
    { mode: 'Freeze', reason: 'etcd is full', expiresAt: '2030-01-01T02:00:00+02:00' },
    false,
  )
  const message = degradeMessage('prod', degrade, 'Freeze')
  for (const part of ['"prod"', 'Freeze', 'etcd is full', '2030-01-01T02:00:00+02:00'])
    assert.ok(message.includes(part), part)
  assert.match(degradeMessage('prod', compileDegrade({ mode: 'ReadOnly' }, false), 'ReadOnly'), /no expiry.*no reason/)
})
