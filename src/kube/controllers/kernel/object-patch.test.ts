// Patches of objects that other clients write, delete or recreate at the same time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MemoryObjects } from '../../../../test/harness/objects/memory-objects.ts'
import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { SCALE_UP_GUARDS } from '../../../scale-up-guard/api/scale-up-guard-kind.ts'
import { StatusError } from '../../api/status.ts'
import { afterFailedWrite, patchAsSeen, patchSame } from './object-patch.ts'

const store = new MemoryObjects()
const TARGET = { client: store, kind: SCALE_UP_GUARDS, fieldManager: 'test', subresource: 'status' } as const
const CHANGE = { status: { groupCount: 1 } }

function put(annotations: object = {}): JsonObject {
  return store.put(SCALE_UP_GUARDS, { metadata: { name: 'a', annotations }, spec: {} })
}

function status(): unknown {
  return store.find(SCALE_UP_GUARDS, 'a')?.['status']
}

function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409
}

test('what was decided about one version is not written to another one', async () => {
  const seen = put()
  put({ changed: 'once' })
  await assert.rejects(patchAsSeen(TARGET, seen, CHANGE), isConflict)
  assert.equal(status(), undefined)
})

test('what holds for all versions is written to the one that there is, but never to another object', async () => {
  const seen = put()
  put({ changed: 'twice' })
  await patchSame(TARGET, seen, CHANGE)
  assert.deepEqual(status(), CHANGE.status)
  store.remove(SCALE_UP_GUARDS, 'a')
  put()
  await assert.rejects(patchSame(TARGET, seen, CHANGE), isConflict)
  assert.equal(status(), undefined)
})

test('it does not compete forever', async () => {
  let attempts = 0
  const busy = {
    get: store.get.bind(store),
    patch: (...args: Parameters<MemoryObjects['patch']>) => {
      put({ attempt: String(++attempts) })
      return store.patch(...args)
    },
  }
  await assert.rejects(patchSame({ ...TARGET, client: busy }, put(), CHANGE), isConflict)
  assert.equal(attempts, 5)
})

test('after a write that failed: nothing for what is gone, again soon after a conflict, later otherwise', async () => {
  const seen = put()
  const current = put({ changed: 'again' })
  const failed = async (): Promise<unknown> => await patchAsSeen(TARGET, seen, CHANGE).catch((error: unknown) => error)
  assert.deepEqual(await afterFailedWrite(TARGET, seen, await failed()), { outcome: 'conflict', current })
  assert.deepEqual(await afterFailedWrite(TARGET, seen, new Error('no answer')), { outcome: 'failed' })
  const conflict = await failed()
  store.away = true
  assert.deepEqual(await afterFailedWrite(TARGET, seen, conflict), { outcome: 'failed' })
  store.away = false
  store.remove(SCALE_UP_GUARDS, 'a')
  for (const error of [conflict, await failed()]) {
    assert.deepEqual(await afterFailedWrite(TARGET, seen, error), { outcome: 'done' })
  }
})
