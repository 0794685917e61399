import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EndedSession, TokenSession } from '../api/token-session.ts'
import { hasEnded } from '../core/logout/token-session.ts'
import { EndedSessions } from './ended-sessions.ts'

const audiences = fc.constantFrom(['a'], ['b'], ['a', 'b'])
const source = fc.constantFrom('one', 'two')
const sub = fc.constantFrom('alice', 'bob')
const session: fc.Arbitrary<TokenSession> = fc.record({
  source,
  audiences,
  sub,
  sid: fc.constantFrom('', 's1', 's2'),
  issuedSeconds: fc.integer({ min: 0, max: 3 }),
})
const ended: fc.Arbitrary<EndedSession> = fc
  .record({
    issuer: fc.constant(''),
    source,
    audiences,
    sub: fc.constantFrom('', 'alice', 'bob'),
    sid: fc.constantFrom('', 's1', 's2'),
    endedSeconds: fc.integer({ min: 0, max: 3 }),
  })
  .filter((one) => one.sid !== '' || one.sub !== '')

test('a session has ended exactly if one of the logouts that are there has ended it', () => {
  const changes = fc.array(fc.tuple(fc.constantFrom('1', '2', '3', '4'), fc.option(ended, { nil: undefined })))
  fc.assert(
    fc.property(changes, session, (all, asked) => {
      const table = new EndedSessions()
      const model = new Map<string, EndedSession>()
      for (const [id, one] of all) {
        table.set(id, one)
        if (one === undefined) model.delete(id)
        else model.set(id, one)
      }
      assert.equal(table.size, model.size)
      assert.equal(
        table.hasEnded(asked),
        [...model.values()].some((one) => hasEnded(asked, one)),
      )
    }),
  )
})

test('nothing is left of a logout that is forgotten', () => {
  const table = new EndedSessions()
  const one: EndedSession = { issuer: '', source: 'one', audiences: ['a'], sid: 's1', sub: 'alice', endedSeconds: 1 }
  table.set('1', one)
  assert.deepEqual([...table.about({ sid: '', sub: 'alice' })], [one])
  table.set('1', undefined)
  assert.deepEqual([...table.about(one)], [])
  assert.equal(table.size, 0)
})
