import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import type { Logger } from '../../../kit/api/ports.ts'
import { IssuerKeys, MIN_FETCH_INTERVAL_MS } from './issuer-keys.ts'

const ISSUER = 'https://login.example.com/realms/ops'
const CONFIGURATION = `${ISSUER}/.well-known/openid-configuration`
const KEYS = 'https://login.example.com/keys'
const KEY = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid: 'k1' }

interface World {
  readonly keys: IssuerKeys
  readonly asked: string[]
  readonly logged: string[]
  readonly answers: Map<string, unknown>
  nowMs: number
}

function world(): World {
  const asked: string[] = []
  const logged: string[] = []
  const answers = new Map<string, unknown>([
    [CONFIGURATION, { issuer: ISSUER, jwks_uri: KEYS }],
    [KEYS, { keys: [KEY] }],
  ])
  const say = (message: string, fields?: object): void => void logged.push(`${message} ${JSON.stringify(fields)}`)
  const log: Logger = { debug: say, info: say, warn: say, error: say }
  const self: World = {
    asked,
    logged,
    answers,
    nowMs: 0,
    keys: new IssuerKeys({
      issuer: ISSUER,
      ca: () => undefined,
      log,
      monotonic: () => self.nowMs,
      onFetched: () => undefined,
      async fetch(url) {
        asked.push(url)
        const answer = answers.get(url)
        if (answer instanceof Error) throw answer
        return answer
      },
    }),
  }
  return self
}

test('keys are fetched no more often than every five seconds, whatever tokens come', async () => {
  const one = world()
  const first = one.keys.refetch()
  assert.ok(first !== undefined)
  // Concurrent calls share one fetch.
  assert.equal(one.keys.refetch(), first)
  await first
  assert.deepEqual(one.asked, [CONFIGURATION, KEYS])
  assert.equal(one.keys.keys.length, 1)
  one.nowMs = MIN_FETCH_INTERVAL_MS - 1
  for (let i = 0; i < 1000; i++) assert.equal(one.keys.refetch(), undefined)
  one.nowMs = MIN_FETCH_INTERVAL_MS
  await one.keys.refetch()
  assert.equal(one.asked.length, 4)
  one.keys.stop()
  one.nowMs *= 2
  assert.equal(one.keys.refetch(), undefined)
})

test('while the provider is away its keys stay, and the log says so once', async () => {
  const one = world()
  await one.keys.refetch()
  const known = one.keys.keys
  one.answers.set(KEYS, new Error('connect ECONNREFUSED'))
  for (let i = 1; i <= 3; i++) {
    one.nowMs = i * MIN_FETCH_INTERVAL_MS
    await one.keys.refetch()
  }
  assert.equal(one.keys.keys, known)
  assert.equal(one.logged.filter((line) => line.includes('those known stay in use')).length, 1)
  one.answers.set(KEYS, { keys: [{ ...KEY, kid: 'k2' }] })
  one.nowMs = 4 * MIN_FETCH_INTERVAL_MS
  await one.keys.refetch()
  assert.deepEqual(
    one.keys.keys.map(({ id }) => id),
    ['k2'],
  )
  one.keys.stop()
})

const refused: readonly [what: string, url: string, answer: unknown][] = [
  ['another issuer', CONFIGURATION, { issuer: 'https://login.example.com', jwks_uri: KEYS }],
  ['no issuer', CONFIGURATION, { jwks_uri: KEYS }],
  ['a list', CONFIGURATION, []],
  ['keys over http', CONFIGURATION, { issuer: ISSUER, jwks_uri: 'http://login.example.com/keys' }],
  ['keys in a file', CONFIGURATION, { issuer: ISSUER, jwks_uri: 'file:///etc/passwd' }],
  ['no JWK Set', KEYS, { keys: {} }],
  ['no key', KEYS, { keys: [] }],
  ['only keys of other kinds', KEYS, { keys: [{ kty: 'oct', k: 'AAAA' }, 5, null] }],
]
for (const [what, url, answer] of refused) {
  test(`${what}: no keys`, async () => {
    const one = world()
    one.answers.set(url, answer)
    await one.keys.refetch()
    assert.deepEqual(one.keys.keys, [])
    assert.equal(one.logged.length, 1)
    one.keys.stop()
  })
}
