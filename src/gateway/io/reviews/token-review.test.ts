import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CallLimitError } from '../../../kube/core/answers/call-errors.ts'
import type { AccessReviewAttributes } from '../../core/identity/impersonate.ts'
import { createAccessReviewer } from './access-review.ts'
import {
  createTokenReviewer,
  MAX_REMEMBERED_BYTES,
  type ReviewCall,
  type TokenQuery,
  type TokenReviewer,
} from './token-review.ts'

const MADE_UP = 60_000

describe('caching', () => {
  test('a good token, whatever number of others is made up', async () => {
    const reviewer = createTokenReviewer(
      () => 0,
      () => undefined,
    )
    let asked = 0
    const call: ReviewCall = (body) => {
      asked++
      const { token } = (JSON.parse(body) as { spec: { token: string } }).spec
      const status = token === 'good' ? { authenticated: true, user: { username: 'carol' } } : {}
      return Promise.resolve({ status: 201, body: JSON.stringify({ status }) })
    }
    const ask = (token: string) =>
      reviewer.review(
        { cluster: 'prod', epoch: 1, token, audiences: [], successTtlMs: 1_000, failureTtlMs: 1_000 },
        call,
      )
    await ask('good')
    for (let i = 0; i < MADE_UP; i++) await ask(`made-up-${i}`)
    assert.equal(asked, MADE_UP + 1)
    const known = ask('good')
    assert.ok(!(known instanceof Promise) && known.kind === 'authenticated', 'at once, from memory')
    assert.ok(reviewer.size() < MADE_UP)
  })

  test('users with many groups are forgotten before they fill the memory', async () => {
    const reviewer = createTokenReviewer(
      () => 0,
      () => undefined,
    )
    const groups = Array.from({ length: 1000 }, (_, i) => `a-group-of-somebody-${i}`.padEnd(200, 'x'))
    const call: ReviewCall = () =>
      Promise.resolve({
        status: 201,
        body: JSON.stringify({ status: { authenticated: true, user: { username: 'u', groups } } }),
      })
    const ask = (token: string) =>
      reviewer.review(
        { cluster: 'prod', epoch: 1, token, audiences: [], successTtlMs: 1_000, failureTtlMs: 1_000 },
        call,
      )
    for (let i = 0; i < 200; i++) await ask(`token-${i}`)
    const each = 1000 * 2 * 200
    assert.ok(reviewer.size() > 1 && reviewer.size() * each < MAX_REMEMBERED_BYTES, String(reviewer.size()))
    assert.ok(!(ask('token-199') instanceof Promise), 'the last one is remembered')
  })

  test('a reason of upstream that is endless is cut', async () => {
    const reviewer = createAccessReviewer(
      () => 0,
      () => undefined,
    )
    const query = {
      cluster: 'prod',
      epoch: 1,
      user: { name: 'u', uid: '', groups: [], extra: {} },
      attributes: { path: '/x', verb: 'get' },
    }
    const status = { allowed: false, reason: 'no'.repeat(1_000_000) }
    const verdict = await reviewer.review(query, () =>
      Promise.resolve({ status: 201, body: JSON.stringify({ status }) }),
    )
    assert.ok(verdict.kind === 'denied' && verdict.reason.length === 1024)
  })

  test('a right, however many others are reviewed', async () => {
    const reviewer = createAccessReviewer(
      () => 0,
      () => undefined,
    )
    const asked: string[] = []
    const user = { name: 'alice', uid: '', groups: [], extra: {} }
    const ask = (name: string) => {
      const attributes: AccessReviewAttributes = {
        verb: 'impersonate',
        group: '',
        resource: 'users',
        subresource: '',
        namespace: '',
        name,
      }
      return reviewer.review({ cluster: 'prod', epoch: 1, user, attributes }, () => {
        asked.push(name)
        return Promise.resolve({ status: 201, body: JSON.stringify({ status: { allowed: name === 'bob' } }) })
      })
    }
    assert.equal((await ask('bob')).kind, 'allowed')
    for (let i = 0; i < 10_000; i++) await ask(`made-up-${i}`)
    assert.equal((await ask('bob')).kind, 'allowed')
    assert.equal(asked.filter((name) => name === 'bob').length, 1)
  })
})

test('a review that the gateway holds back has no result, and is not counted as sent', async () => {
  const lookups: string[] = []
  const reviewer = createTokenReviewer(
    () => 0,
    (_, outcome) => void lookups.push(outcome),
  )
  const query = { cluster: 'prod', epoch: 1, token: 't', audiences: [], successTtlMs: 1_000, failureTtlMs: 1_000 }
  const verdict = await reviewer.review(query, () => Promise.reject(new CallLimitError('too many', 3)))
  assert.deepEqual(verdict, { kind: 'unavailable', message: 'too many', retryAfterSeconds: 3 })
  assert.deepEqual(lookups, ['limited'])
  assert.equal(reviewer.size(), 0)
})

describe('one cached answer', () => {
  const asks = (reviewer: TokenReviewer, call: ReviewCall) => (query: Partial<TokenQuery>) =>
    reviewer.review(
      { cluster: 'prod', epoch: 1, token: 't', audiences: [], successTtlMs: 1_000, failureTtlMs: 1_000, ...query },
      call,
    )
  const create = (): TokenReviewer =>
    createTokenReviewer(
      () => 0,
      () => undefined,
    )
  const accepted = (username: string) => ({
    status: 201,
    body: JSON.stringify({ status: { authenticated: true, audiences: ['a', 'ab', 'b'], user: { username } } }),
  })

  test('is of one token in one cluster, epoch and list of audiences, wherever the text of one ends', async () => {
    let asked = 0
    const ask = asks(create(), () => Promise.resolve(accepted(`user-${++asked}`)))
    const queries: Partial<TokenQuery>[] = [
      {},
      { token: 't:' },
      { cluster: 'pro', token: 'dt' },
      { cluster: 'prod1', epoch: 1 },
      { cluster: 'prod', epoch: 11 },
      { cluster: '4:prod' },
      { token: '1:t' },
      { token: 't1:a' },
      { audiences: ['a'] },
      { audiences: ['a', 'b'] },
      { audiences: ['ab'] },
      { audiences: ['a1:b'] },
      { token: 't', cluster: 'prod', audiences: ['b', 'a'] },
    ]
    for (const query of queries) await ask(query)
    assert.equal(asked, queries.length)
    const names = queries.map((query) => {
      const known = ask(query)
      return known instanceof Promise || known.kind !== 'authenticated' ? '' : known.user.name
    })
    // None of the upstream's audiences is 'a1:b': rejected, and remembered as that.
    assert.deepEqual(
      names,
      queries.map((query, i) => (query.audiences?.[0] === 'a1:b' ? '' : `user-${i + 1}`)),
    )
    assert.equal(asked, queries.length)
  })

  test('answers all who ask meanwhile, and nobody of a later epoch, whichever is answered first', async () => {
    const pending: ((answer: { status: number; body: string }) => void)[] = []
    const ask = asks(create(), () => new Promise((resolve) => pending.push(resolve)))
    const before = [ask({ epoch: 1 }), ask({ epoch: 1 })]
    const after = ask({ epoch: 2 })
    assert.equal(pending.length, 2, 'asked at once')
    pending[1]?.({ status: 201, body: JSON.stringify({ status: { authenticated: false } }) })
    assert.equal((await after).kind, 'rejected')
    pending[0]?.(accepted('carol'))
    for (const one of before) assert.equal((await one).kind, 'authenticated')
    assert.equal((await ask({ epoch: 2 })).kind, 'rejected')
    assert.equal(pending.length, 2)
  })

  test('whose call throws, or breaks, leaves nothing behind: the next one asks again', async () => {
    let asked = 0
    const ask = asks(create(), () => {
      if (++asked === 1) throw new Error('no call')
      if (asked === 2) return Promise.reject(new Error('broke'))
      return Promise.resolve(asked === 3 ? { status: 201, body: '{"status":' } : accepted('carol'))
    })
    for (let i = 0; i < 3; i++) assert.equal((await ask({})).kind, 'unavailable')
    assert.equal((await ask({})).kind, 'authenticated')
    assert.equal(asked, 4)
  })
})
