import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareResourceVersions } from '../../kube/core/objects/resource-version.ts'
import { federationEpoch, versionsOf } from './federation-epoch.ts'
import { encodeVector } from './vectors.ts'

const [east, west, north] = ['east', 'west', 'north'].map((name) => ({ name, cluster: name })) as [
  Member,
  Member,
  Member,
]

interface Member {
  readonly name: string
  readonly cluster: string
}

function vector(
  members: readonly Member[],
  versions: readonly string[],
): { epoch: number; versions: readonly string[] } {
  return { epoch: federationEpoch(members), versions }
}

test('a version of these members has a part for each', () => {
  assert.deepEqual(versionsOf(vector([east, west], ['5', '7']), [east, west]), ['5', '7'])
})

test('a version from before a member joined says nothing of that one, and is lower than all that come', () => {
  const before = vector([east, west], ['5', '7'])
  assert.deepEqual(versionsOf(before, [east, west, north]), ['5', '7', ''])
  const after = vector([east, west, north], ['5', '7', ''])
  assert.ok((compareResourceVersions(encodeVector(before), encodeVector(after)) ?? 0) < 0)
})

test('a version from before a member left, or of others, or in another order, is none', () => {
  const all = vector([east, west, north], ['5', '7', '9'])
  assert.equal(versionsOf(all, [east, west]), undefined)
  assert.equal(versionsOf(all, [east, north]), undefined)
  assert.equal(versionsOf(vector([east, west], ['5', '7']), [west, east]), undefined)
  assert.equal(versionsOf(vector([east, west], ['5', '7']), [east, { name: 'west', cluster: 'other' }]), undefined)
})

test('the epoch is the same at all replicas, and of all versions of the program', () => {
  assert.equal(federationEpoch([east, west]), EPOCH_OF_EAST_AND_WEST)
})

const EPOCH_OF_EAST_AND_WEST = 7889
