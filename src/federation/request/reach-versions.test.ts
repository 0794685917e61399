import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CachedCollection } from '../../cache/state/cached-collection.ts'
import { reachInMember } from './reach-versions.ts'

/** @param proved what the cluster proves to be current */
function resumed(behind: string, proved: string | undefined) {
  let isAsked = false
  const never = new Promise<boolean>(() => undefined)
  const kept = {
    isAtLeast: () => false,
    isGone: false,
    // A quiet collection hears nothing, for as long as it waits.
    reaches: () => (proved === '21' ? never : Promise.resolve(false)),
  }
  const caches = {
    currentVersion: async () => {
      isAsked = true
      return proved
    },
  }
  const member = { slot: 0, kept: kept as unknown as CachedCollection }
  const result = reachInMember(caches, member, { kind: 'resume', versions: [behind] }, 3_000, 0)
  return { result, isAsked }
}

test('a watch that goes on does not wait for a bookmark once the member has proved that it has the version', async () => {
  const { result, isAsked } = resumed('20', '21')
  assert.equal(await result, 'reached')
  assert.ok(isAsked)
})

test('one behind a version that the member never had is told so', async () => {
  assert.equal(await resumed('20', '19').result, 'expired')
})

test('without a proof it goes on where it is', async () => {
  assert.equal(await resumed('20', undefined).result, 'reached')
})
