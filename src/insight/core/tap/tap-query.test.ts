import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { REFUSAL_TABLE } from '../../../kit/core/refusal/refusal.ts'
import { EVERYTHING } from './tap-filter.ts'
import { readTapQuery, type TapQuery, type TapRequest, writeTapQuery } from './tap-query.ts'

function read(query: string): TapQuery {
  return readTapQuery(new URLSearchParams(query))
}

test('without parameters everything is shown, at the default rate, for the default time', () => {
  assert.deepEqual(read(''), { request: { filter: EVERYTHING, selector: '', maxRps: 100, forMs: 300_000, limit: 0 } })
  assert.ok(read('replicas=all').request)
})

test('every error is told at once', () => {
  const query =
    'usr=x&code=600&code=abc&address=10.0.0.0/99&maxRps=0&for=2h&slow=-1s&started=yes&user=a*b&limit=x&reason=rate-limitd'
  assert.deepEqual(read(query).errors, [
    'unknown parameter "usr"',
    'code "600" must be a status code or a class of them: 429, 4xx',
    'code "abc" must be a status code or a class of them: 429, 4xx',
    'address "10.0.0.0/99" must be an address or a range: 10.0.0.0/8',
    'maxRps "0" must be a whole number from 1 to 1000',
    'for "2h" must be a duration above 0 and at most 1h: 500ms, 5m',
    'slow "-1s" must be a duration above 0 and at most 1h: 500ms, 5m',
    'started "yes" must be true or false',
    'user "a*b" can have a * only at its end',
    'limit "x" must be a whole number from 1 to 1000000',
    `reason "rate-limitd" must be one of ${Object.keys(REFUSAL_TABLE).join(', ')}`,
  ])
})

test('errors name a parameter as the caller knows it', () => {
  const { errors } = readTapQuery(new URLSearchParams('maxRps=0&started=true&code=4xx'), (name) => `--${name}`)
  assert.deepEqual(errors, [
    '--maxRps "0" must be a whole number from 1 to 1000',
    '--started shows requests before they are answered: without --code, --refused, --reason, --slow',
  ])
})

test('reasons are those that refusals have, beginnings of them, and all but one', () => {
  for (const reason of ['rate-limited', 'rate-*', '-rate-limited', '-rate-*', '*']) {
    assert.ok(read(`reason=${encodeURIComponent(reason)}`).request, reason)
  }
  for (const reason of ['', 'limit', 'limit*', '--degraded']) assert.ok(read(`reason=${reason}`).errors, reason)
})

test('lists and values are bounded', () => {
  assert.ok(read('user=x&'.repeat(32)).request)
  assert.match(read('user=x&'.repeat(33)).errors?.[0] ?? '', /more than 32 values of user/)
  assert.match(read(`user=${'x'.repeat(257)}`).errors?.[0] ?? '', /longer than 256 characters/)
})

test('clusters are named, or selected by their labels', () => {
  assert.equal(read('selector=region%3Deu').request?.selector, 'region=eu')
  for (const [query, problem] of [
    ['selector=', 'selector: --selector is empty'],
    ['selector=a%3D%3D%3Db', 'selector: --selector "a===b"'],
    ['selector=region%3Deu&cluster=prod', 'clusters and selector are both given: give one of the two'],
  ] as const)
    assert.ok(
      read(query).errors?.some((error) => error.startsWith(problem)),
      `${read(query).errors}`,
    )
})

test('started does not go together with what only the end tells', () => {
  for (const other of ['code=4xx', 'refused=true', 'slow=1s', 'reason=degraded']) {
    assert.match(read(`started=true&${other}`).errors?.[0] ?? '', /^started shows requests before/, other)
  }
})

test('what the command line writes is what the admin listener reads', () => {
  const list = fc.array(fc.stringMatching(/^[a-z &=?%+:]{0,20}\*?$/), { maxLength: 4 })
  const filter = fc.record({
    ...{ clusters: list, users: list, groups: list, userAgents: list, verbs: list, namespaces: list, names: list },
    ...{ resources: list, paths: list },
    reasons: fc.subarray(['rate-limited', 'protected*', '-degraded']),
    codes: fc.subarray(['429', '4xx', '200']),
    addresses: fc.subarray(['10.0.0.0/8', '::1']),
    refused: fc.boolean(),
    slowMs: fc.constant(0),
    started: fc.constant(false),
  })
  const selector = fc.constantFrom('', 'region=eu', 'region in (eu,us),!canary')
  const numbers = {
    maxRps: fc.integer({ min: 1, max: 1000 }),
    forMs: fc.integer({ min: 1, max: 3600 }).map((s) => s * 1000),
  }
  fc.assert(
    fc.property(fc.record({ filter, selector, ...numbers, limit: fc.nat(100) }), (given: TapRequest) => {
      const clusters = given.selector === '' ? given.filter.clusters : []
      const request: TapRequest = { ...given, filter: { ...given.filter, clusters } }
      assert.deepEqual(read(writeTapQuery(request).toString()), { request })
    }),
  )
})
