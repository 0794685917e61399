// Merge patches guarded by the resourceVersion that was read. A uid would not be enough: a kube-apiserver ignores metadata.uid in a patch
// of
// a custom resource's status, so the status could reach another object of the same name.

import { type JsonObject, nameOf, namespaceOf } from '../../../kit/api/json/json-object.ts'
import { recordOf } from '../../../kit/api/json/object-shape.ts'
import type { ObjectClient, ObjectName, PatchOptions } from '../../api/object-client.ts'
import type { ResourceKind } from '../../api/resource-kind.ts'
import { isMissing, StatusError } from '../../api/status.ts'
import type { ReconcileOutcome } from './work-queue.ts'

export interface PatchTarget extends PatchOptions {
  readonly client: Pick<ObjectClient, 'get' | 'patch'>
  readonly kind: ResourceKind
}

/** How often others may write between our read and write. */
const MAX_ATTEMPTS = 5

/** @returns the object after the write; rejects with Conflict if it is no longer at version `seen` */
export async function patchAsSeen(
  { client, kind, fieldManager, subresource }: PatchTarget,
  seen: JsonObject,
  change: JsonObject,
): Promise<JsonObject> {
  const metadata = { ...recordOf(change['metadata']), resourceVersion: recordOf(seen['metadata'])['resourceVersion'] }
  const options = { fieldManager, ...(subresource !== undefined && { subresource }) }
  return await client.patch(kind, atOf(seen), 'application/merge-patch+json', { ...change, metadata }, options)
}

/** Patches any version of the object `seen`; rejects with Conflict if another object has its name. */
export async function patchSame(target: PatchTarget, seen: JsonObject, change: JsonObject): Promise<JsonObject> {
  let current = seen
  for (let attempt = 1; ; attempt++) {
    try {
      return await patchAsSeen(target, current, change)
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isConflict(error)) throw error
      current = await target.client.get(target.kind, atOf(seen))
      if (uidOf(current) !== uidOf(seen)) throw error
    }
  }
}

export interface FailedWrite {
  readonly outcome: ReconcileOutcome
  /** After a conflict: the current object. */
  readonly current?: JsonObject
}

/** Handles a failed write of `seen` in a turn of a work queue. Never rejects. */
export async function afterFailedWrite(
  { client, kind }: Pick<PatchTarget, 'client' | 'kind'>,
  seen: JsonObject,
  error: unknown,
): Promise<FailedWrite> {
  if (isMissing(error, nameOf(seen))) return { outcome: 'done' }
  if (!isConflict(error)) return { outcome: 'failed' }
  try {
    return { outcome: 'conflict', current: await client.get(kind, atOf(seen)) }
  } catch (failed) {
    return { outcome: isMissing(failed, nameOf(seen)) ? 'done' : 'failed' }
  }
}

function isConflict(error: unknown): boolean {
  return error instanceof StatusError && error.code === 409
}

function atOf(object: JsonObject): ObjectName {
  return { namespace: namespaceOf(object), name: nameOf(object) }
}

function uidOf(object: JsonObject): unknown {
  return recordOf(object['metadata'])['uid']
}
