import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { clusterObject } from '../../../../test/harness/objects/objects.ts'
import { waitFor } from '../../../../test/harness/wait.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import { compileCluster } from '../../core/cluster/compile-cluster.ts'
import type { CompiledCluster } from '../../core/cluster/compiled-cluster.ts'
import type { KeysRead } from '../../io/reviews/issuer-tokens.ts'
import { FollowedIssuers } from './followed-issuers.ts'

const QUIET: Logger = { debug() {}, info() {}, warn() {}, error() {} }
const KEY = { ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }), kid: 'k1' }
const DAY_MS = 24 * 60 * 60_000

function cluster(name: string, ...urls: readonly string[]): CompiledCluster {
  const jwt = urls.map((url) => ({
    issuer: { url, audiences: ['a'] },
    claimMappings: { username: { claim: 'sub', prefix: '' } },
  }))
  const object = clusterObject([], { name, spec: { authentication: { jwt } } })
  return compileCluster({ object, revision: '1' })
}

function world() {
  const published: KeysRead[] = []
  const asked: string[] = []
  const self = { nowMs: 0, away: false }
  const issuers = new FollowedIssuers({
    guard: new DialGuard([]),
    clock: { monotonic: () => self.nowMs },
    log: QUIET,
    publish: (read) => void published.push(read),
    async fetch(url) {
      asked.push(url)
      if (self.away) throw new Error('away')
      const issuer = url.replace('/.well-known/openid-configuration', '')
      return url === issuer ? { keys: [KEY] } : { issuer, jwks_uri: `${issuer}/keys` }
    },
  })
  return Object.assign(self, { issuers, published, asked })
}

const [A, B] = ['https://a.test', 'https://b.test']

test('an issuer of several clusters is read once, and forgotten with the last of them', async () => {
  const one = world()
  one.issuers.change([cluster('x', A), cluster('y', A, B)], [])
  await waitFor('the keys', () => one.published.length === 2)
  assert.equal(one.asked.filter((url) => url === `${A}/keys`).length, 1)
  assert.deepEqual(
    one.issuers.ofCluster('y')?.map(({ issuer, keys }) => [issuer, keys]),
    [
      [A, 1],
      [B, 1],
    ],
  )
  assert.equal(one.issuers.ofCluster('z'), undefined)
  one.issuers.change([cluster('y', A)], ['x'])
  assert.deepEqual(
    one.published.slice(2).map(({ keys }) => keys),
    [undefined],
  )
  assert.deepEqual(
    one.issuers.all().map(({ issuer }) => issuer),
    [A],
  )
  one.issuers.change([cluster('y')], [])
  assert.deepEqual(one.issuers.all(), [])
  assert.equal(one.issuers.ofCluster('y'), undefined)
  one.issuers.stop()
})

test('a change of a cluster that keeps its issuer does not read it again', async () => {
  const one = world()
  one.issuers.change([cluster('x', A)], [])
  await waitFor('the keys', () => one.published.length === 1)
  one.issuers.change([cluster('x', A)], [])
  await one.issuers.readAgain(cluster('x', A).authentication.issuers[0]?.keys ?? '')
  assert.equal(one.asked.length, 2)
  assert.equal(one.published.length, 1)
  one.issuers.stop()
})

test('keys stay for a day while the issuer is away, and it says so', async () => {
  const one = world()
  const source = cluster('x', A).authentication.issuers[0]?.keys ?? ''
  one.issuers.change([cluster('x', A)], [])
  await waitFor('the keys', () => one.published.length === 1)
  one.away = true
  one.nowMs = DAY_MS
  await one.issuers.readAgain(source)
  assert.deepEqual(one.issuers.ofCluster('x'), [{ issuer: A, keys: 1, asked: true, message: 'away' }])
  assert.equal(one.published.length, 1)
  one.nowMs = DAY_MS + 60_000
  await one.issuers.readAgain(source)
  assert.deepEqual(one.issuers.ofCluster('x'), [{ issuer: A, keys: 0, asked: true, message: 'away' }])
  assert.deepEqual(one.published[1], { source, keys: [] })
  one.issuers.stop()
})

test('an issuer on this machine is not asked, unless the operator allows it', async () => {
  const published: KeysRead[] = []
  const issuers = new FollowedIssuers({
    guard: new DialGuard([]),
    clock: { monotonic: () => 0 },
    log: QUIET,
    publish: (read) => void published.push(read),
  })
  issuers.change([cluster('x', 'https://127.0.0.1:1', 'https://169.254.169.254')], [])
  const messages = await waitFor('both', () => {
    const facts = issuers.ofCluster('x') ?? []
    return facts.every(({ asked }) => asked) && facts.map(({ message }) => message)
  })
  for (const message of messages) assert.match(message, /--allow-local-servers/)
  issuers.stop()
})
