import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClusterTile } from '../../api/overview.ts'
import { chooseTiles, labelKeysOf, readTileChoice } from './choose-tiles.ts'

function tile(name: string, group: string, part: Partial<ClusterTile> = {}): ClusterTile {
  return {
    name,
    group,
    troubles: [],
    requestsPerSecond: 0,
    errorRatio: 0,
    refusedRatio: 0,
    p50: null,
    p99: null,
    inFlight: 0,
    watches: 0,
    endpoints: { up: 1, all: 1 },
    degrade: null,
    spark: [],
    ...part,
  }
}

test('groups by label: in order of the values, the worst first within each, and those without it last', () => {
  const tiles = [
    tile('a', ''),
    tile('b', 'us'),
    tile('c', 'eu'),
    tile('d', 'us', { troubles: ['down'] }),
    tile('e', 'eu', { degrade: { mode: 'ReadOnly', reason: '', by: '', since: 0, expiresAt: 0, shadow: false } }),
  ]
  const choice = readTileChoice(new URLSearchParams('group=region'))
  const { tiles: shown, groups } = chooseTiles(tiles, choice)
  assert.deepEqual(
    shown.map(({ name }) => name),
    ['c', 'e', 'd', 'b', 'a'],
  )
  assert.deepEqual(groups, [
    { value: 'eu', clusters: 2, hurting: 0, switched: 1 },
    { value: 'us', clusters: 2, hurting: 1, switched: 0 },
    { value: '', clusters: 1, hurting: 0, switched: 0 },
  ])
})

test('groups are bounded, as are the labels that are offered; a malformed label groups nothing', () => {
  const tiles = Array.from({ length: 80 }, (_, i) => tile(`c${i}`, `v${i}`))
  assert.equal(chooseTiles(tiles, readTileChoice(new URLSearchParams('group=id'))).groups.length, 50)
  const many = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, '']))
  const keys = labelKeysOf([many, { region: 'eu' }, { region: 'us', env: 'prod' }, { env: 'prod', region: 'eu' }])
  assert.deepEqual([keys.length, keys.slice(0, 2)], [20, ['region', 'env']])
  assert.equal(readTileChoice(new URLSearchParams('group=a b')).group, '')
  assert.deepEqual(chooseTiles(tiles, readTileChoice(new URLSearchParams())).groups, [])
})
