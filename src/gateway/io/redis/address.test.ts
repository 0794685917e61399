import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { parseRedisAddress, redisAddress } from './address.ts'
import { RedisKeys, slotOf } from './limits.ts'

const NOTHING = { master: '', database: 0, user: '', password: '', tls: false }

test('one server, Sentinels and a Cluster', () => {
  const server = { ...NOTHING, topology: 'server' }
  assert.deepEqual(parseRedisAddress('redis://h'), { ...server, nodes: [{ host: 'h', port: 6379 }] })
  assert.deepEqual(parseRedisAddress('rediss://u:p%40%2F@[::1]:7/3'), {
    ...server,
    nodes: [{ host: '::1', port: 7 }],
    tls: true,
    database: 3,
    user: 'u',
    password: 'p@/',
  })
  const sentinels = [
    { host: 'a', port: 26379 },
    { host: '10.0.0.1', port: 1 },
  ]
  const known = { ...NOTHING, topology: 'sentinel', nodes: sentinels, master: 'mymaster' }
  assert.deepEqual(parseRedisAddress('redis+sentinel://a,10.0.0.1:1/mymaster'), known)
  assert.deepEqual(parseRedisAddress('redis-sentinel://a,10.0.0.1:1/mymaster/2'), { ...known, database: 2 })
  const nodes = [
    { host: 'a', port: 6379 },
    { host: 'b', port: 7 },
  ]
  const cluster = { ...NOTHING, topology: 'cluster', nodes, tls: true, user: 'u' }
  assert.deepEqual(parseRedisAddress('rediss+cluster://u@a,b:7/0'), cluster)
})

test('for people: without user and password', () => {
  assert.equal(redisAddress('rediss://user:secret@example.com/3'), 'example.com:6379')
  assert.equal(redisAddress('redis+sentinel://:secret@a:1,[::1]:2/main'), 'main of a:1,[::1]:2')
  assert.equal(redisAddress('redis+cluster://:secret@a:1,b'), 'a:1,b:6379')
})

test('what is not the address of a Redis is refused, and its password is not repeated', () => {
  const bad = [
    '',
    'secret',
    'localhost:6379',
    'http://:secret@host',
    'redis+sentinels://:secret@host',
    'redis://:secret@host/x',
    'redis://:secret@/1',
    'redis://:secret@host:0',
    'redis://:secret@host:65536',
    'redis://:secret@a,b',
    'redis://:secret@host/1/2',
    'redis://:secret@host?db=1',
    'redis://:secret%@host',
    'redis://:secret@[::1/1',
    'redis+sentinel://:secret@a:1',
    'redis+sentinel://:secret@a:1/name/x',
    'redis+cluster://:secret@a/1',
    `redis+cluster://:secret@${'a,'.repeat(64)}a`,
    'redis://:sec\nret@host',
  ]
  for (const url of bad) {
    assert.throws(
      () => parseRedisAddress(url),
      (error) => error instanceof UserError && !`${error.message} ${error.fix}`.includes('secret'),
      url,
    )
  }
})

test('in a Cluster all keys are in one slot', () => {
  // From CLUSTER KEYSLOT.
  assert.equal(slotOf('123456789'), 12739)
  assert.equal(slotOf('a{123456789}b'), 12739)
  assert.equal(slotOf('foo{}{bar}'), slotOf('foo{}{bar}'))
  const keys = new RedisKeys('portcullis', true)
  const slots = [keys.replicas, `${keys.buckets}:prod/all`, keys.leases('prod', 'x{y}')].map(slotOf)
  assert.deepEqual(new Set(slots).size, 1)
  assert.equal(new RedisKeys('portcullis').replicas, 'portcullis:v1:replicas')
})
