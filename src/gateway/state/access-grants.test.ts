import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { UserInfo } from '../../kube/api/user.ts'
import { type AccessGrantInForce, grantedUser } from '../core/identity/access-grants.ts'
import { AccessGrants } from './access-grants.ts'

/** Wall clock and monotonic clock of the tests begin at different times. */
const WALL = 1_000_000

function grantOf(name: string, more: Partial<AccessGrantInForce> = {}): AccessGrantInForce {
  return {
    name,
    uid: name,
    subject: { kind: 'User', name: 'alice' },
    clusters: ['prod'],
    groups: ['ops-admin'],
    fromMs: WALL + 100,
    untilMs: WALL + 200,
    ...more,
  }
}

function user(name: string, groups: readonly string[] = []): UserInfo {
  return { name, uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
}

function tableOf(...grants: readonly AccessGrantInForce[]): AccessGrants {
  const table = new AccessGrants()
  table.replace(grants, WALL, 0)
  return table
}

/** Names of those in force `afterMs` after the beginning, by both clocks unless told another wall clock. */
function names(table: AccessGrants, cluster: string, who: UserInfo, afterMs: number, wallMs = afterMs): string[] {
  return (table.of(cluster, who, WALL + wallMs, afterMs) ?? []).map(({ grant }) => grant.name)
}

const CASES: readonly [what: string, cluster: string, who: UserInfo, afterMs: number, found: readonly string[]][] = [
  ['its time', 'prod', user('alice'), 150, ['one']],
  ['its first moment', 'prod', user('alice'), 100, ['one']],
  ['before it', 'prod', user('alice'), 99, []],
  ['its last moment', 'prod', user('alice'), 199, ['one']],
  ['its end', 'prod', user('alice'), 200, []],
  ['another cluster', 'test', user('alice'), 150, []],
  ['another user', 'prod', user('bob'), 150, []],
  ['a user whose name begins with that of the subject', 'prod', user('alice2'), 150, []],
  ['a group of the name of the subject', 'prod', user('bob', ['alice']), 150, []],
  ['a member', 'prod', user('bob', ['oncall']), 150, ['two']],
  ['a user of the name of the group', 'prod', user('oncall'), 150, []],
  ['both', 'prod', user('alice', ['oncall']), 150, ['one', 'two']],
  ['a name of Object.prototype', '__proto__', user('constructor'), 150, []],
]

test('who is granted what, where and when', () => {
  for (const [what, cluster, who, afterMs, found] of CASES) {
    const table = tableOf(grantOf('one'), grantOf('two', { subject: { kind: 'Group', name: 'oncall' } }))
    assert.deepEqual(names(table, cluster, who, afterMs), found, what)
  }
})

test('an ended grant stays ended, whatever the wall clock says', () => {
  const ended = tableOf(grantOf('one'))
  assert.deepEqual(names(ended, 'prod', user('alice'), 210), [])
  assert.deepEqual(names(ended, 'prod', user('alice'), 220, 150), [], 'the clock was set back after its end')
  ended.replace([grantOf('one')], WALL + 150, 230)
  assert.deepEqual(names(ended, 'prod', user('alice'), 230, 150), [], 'it was told again')

  const running = tableOf(grantOf('one'))
  assert.deepEqual(names(running, 'prod', user('alice'), 150), ['one'])
  assert.deepEqual(names(running, 'prod', user('alice'), 199, 120), ['one'], 'the clock was set back before its end')
  assert.deepEqual(names(running, 'prod', user('alice'), 200, 121), [], 'it does not last longer for it')

  const told = tableOf(grantOf('one'))
  told.replace([grantOf('one')], WALL + 20, 120)
  assert.deepEqual(names(told, 'prod', user('alice'), 200, 110), [], 'nor if it is told again after that')
})

test('a grant that is no longer among all ends at once, for requests that hold it, too', () => {
  const table = tableOf(grantOf('one'), grantOf('two', { clusters: ['prod', 'test'] }))
  const held = table.of('prod', user('alice'), WALL + 150, 150) ?? []
  table.replace([grantOf('two', { clusters: ['prod', 'test'] })], WALL + 150, 150)
  assert.deepEqual(
    held.map(({ ended }) => ended),
    [true, false],
  )
  assert.equal(table.endExpired(WALL + 199, 199), false)
  assert.equal(table.endExpired(WALL + 200, 200), true)
  assert.equal(table.endExpired(WALL + 201, 201), false, 'it ends once')
  assert.equal(held[1]?.ended, true)
  table.replace([], WALL + 210, 210)
  assert.equal(table.isEmpty, true)
})

test('the requests of a grant are ended, also if another request was the first to see that it is over', () => {
  const table = tableOf(grantOf('one'))
  assert.deepEqual(names(table, 'prod', user('alice'), 200), [])
  assert.equal(table.endExpired(WALL + 200, 200), true)
  assert.equal(table.endExpired(WALL + 201, 201), false)
})

test('an object of the same name that is created later is another grant', () => {
  const table = tableOf(grantOf('one'))
  assert.equal(table.endExpired(WALL + 200, 200), true)
  table.replace([grantOf('one', { uid: 'later', fromMs: WALL + 200, untilMs: WALL + 300 })], WALL + 200, 200)
  assert.deepEqual(names(table, 'prod', user('alice'), 250), ['one'])
})

test('a user keeps its own groups, and has each once', () => {
  const granted = grantedUser(user('alice', ['dev', 'ops-admin']), [grantOf('one'), grantOf('two', { groups: ['b'] })])
  assert.deepEqual(granted.groups, ['dev', 'ops-admin', 'system:authenticated', 'b'])
})
