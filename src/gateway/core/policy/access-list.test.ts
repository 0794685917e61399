import assert from 'node:assert/strict'
import { BlockList } from 'node:net'
import { test } from 'node:test'
import fc from 'fast-check'
import type { UserInfo } from '../../../kube/api/user.ts'
import type { AccessControl } from '../../api/upstream-cluster/upstream-cluster.ts'
import { compileAccess } from '../cluster/compile-rules.ts'
import { type AccessRefusal, checkAccess } from './access-list.ts'

const ALICE: UserInfo = { name: 'alice', uid: '', groups: ['dev', 'system:authenticated'], extra: {} }

function check(
  access: AccessControl,
  address = '10.1.2.3',
  user = ALICE,
  userAgent = 'kubectl/v1',
): AccessRefusal | undefined {
  return checkAccess(compileAccess(access), user, userAgent, address)
}

const NOT_ALLOWED = { rule: '', list: 'allow' }

test('empty lists refuse no user', () => {
  assert.equal(check({}), undefined)
  assert.equal(check({ allow: [], deny: [] }), undefined)
})

test('deny is asked first, and names its rule', () => {
  const deny = [
    { name: 'bob', users: ['bob'] },
    { name: 'devs', userGroups: ['dev'] },
  ]
  assert.deepEqual(check({ deny, allow: [{ users: ['alice'] }] }), { rule: 'devs', list: 'deny' })
  assert.deepEqual(check({ deny: [{}] }), { rule: '', list: 'deny' })
})

test('a non-empty allow list refuses everybody that it does not name', () => {
  assert.equal(check({ allow: [{ users: ['bob'] }, { users: ['al*'] }] }), undefined)
  assert.deepEqual(check({ allow: [{ users: ['bob'] }] }), NOT_ALLOWED)
})

test('all fields of a rule must match, one entry of each is enough', () => {
  const rule = { users: ['bob', 'alice'], userGroups: ['dev'], userAgents: ['kubectl/*'], sourceIPs: ['10.0.0.0/8'] }
  assert.equal(check({ allow: [rule] }), undefined)
  assert.deepEqual(check({ allow: [{ ...rule, userGroups: ['ops'] }] }), NOT_ALLOWED)
  assert.deepEqual(check({ allow: [rule] }, '11.1.2.3'), NOT_ALLOWED)
  assert.deepEqual(check({ allow: [rule] }, '10.1.2.3', ALICE, 'curl'), NOT_ALLOWED)
})

test('addresses: IPv4-mapped is IPv4, an unreadable one is in no block', () => {
  const allow = [{ sourceIPs: ['10.0.0.0/8', 'fd00::/8'] }]
  assert.equal(check({ allow }, '::ffff:10.9.9.9'), undefined)
  assert.equal(check({ allow }, 'fdab::1'), undefined)
  assert.equal(check({ allow }, 'fdab::1%eth0'), undefined)
  assert.deepEqual(check({ allow }, '::10.9.9.9'), NOT_ALLOWED)
  assert.deepEqual(check({ allow }, ''), NOT_ALLOWED)
  assert.deepEqual(check({ allow: [{ sourceIPs: ['::/0'] }] }, '10.0.0.1'), NOT_ALLOWED)
})

test('an invalid address matches no client, rather than every client', () => {
  assert.deepEqual(check({ allow: [{ sourceIPs: ['office'] }] }), NOT_ALLOWED)
  assert.equal(check({ deny: [{ sourceIPs: ['office'] }] }), undefined)
})

test('agrees with the block list of the operating system', () => {
  // Adjacent addresses, so that prefixes decide. Not ::/0, to which Node.js maps IPv4 too.
  const v4 = fc.tuple(fc.constantFrom(10, 11), fc.nat(3), fc.constant(0), fc.nat(255)).map((bytes) => bytes.join('.'))
  const v6 = fc.tuple(fc.constantFrom('fd00', 'fd01'), fc.nat(3)).map(([head, tail]) => `${head}::${tail}`)
  const block = fc.oneof(fc.tuple(v4, fc.nat(32)), fc.tuple(v6, fc.integer({ min: 1, max: 128 })))
  fc.assert(
    fc.property(fc.array(block, { minLength: 1, maxLength: 3 }), fc.oneof(v4, v6), (blocks, address) => {
      const family = (text: string): 'ipv4' | 'ipv6' => (text.includes(':') ? 'ipv6' : 'ipv4')
      const list = new BlockList()
      for (const [net, bits] of blocks) list.addSubnet(net, bits, family(net))
      const deny = [{ sourceIPs: blocks.map(([net, bits]) => `${net}/${bits}`) }]
      assert.equal(check({ deny }, address) !== undefined, list.check(address, family(address)))
    }),
    { numRuns: 1000 },
  )
})
