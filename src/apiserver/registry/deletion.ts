// DELETE of one object (registry/generic/registry/store.go Delete): at once, or marked until its finalizers are gone.

import { finalizersOf, type JsonObject } from '../../kit/api/json/json-object.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { ObjectName } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import type { Status } from '../../kube/api/status.ts'
import { StoreConflict, type StoredObject } from '../api/object-store.ts'
import { isBeingDeleted, metaNumber, metaText } from '../objects/object-metadata.ts'
import { conflict, detailsOf, MODIFIED } from '../objects/registry-errors.ts'
import type { RegistryContext } from './context.ts'
import type { DeleteOptions } from './deletion-options.ts'
import { removalWrites, replacement } from './deletion-writes.ts'
import { markedForDeletion } from './finalizers.ts'
import { isNamespace, refuseImmortal } from './namespaces.ts'
import { storedObject } from './update.ts'

export interface Deleted {
  /** The object, waiting for finalizers or the end of its grace period; undefined = it was removed. */
  readonly waiting: JsonObject | undefined
  /** The last state of a removed object. */
  readonly last: JsonObject
}

/** @throws {StatusError} 404, or 409 if a precondition fails */
export function deleteObject(
  context: RegistryContext,
  kind: ResourceKind,
  at: ObjectName,
  options: DeleteOptions,
): Deleted {
  if (isNamespace(kind)) refuseImmortal(at.name)
  return deleteStored(context, kind, storedObject(context, kind, at), options)
}

function deleteStored(
  context: RegistryContext,
  kind: ResourceKind,
  stored: StoredObject,
  options: DeleteOptions,
): Deleted {
  checkPreconditions(kind, stored, options)
  const { object } = stored
  const grace = graceOf(kind, object, options)
  const held = finalizersOf(object).length > 0 || grace > 0
  if (options.dryRun) {
    return { waiting: held ? markedForDeletion(object, context.now(), grace) : undefined, last: object }
  }
  try {
    if (!held || isNamespace(kind)) return remove(context, kind, stored)
    const marked = markedForDeletion(object, context.now(), grace)
    if (sameJson(marked, object)) return { waiting: object, last: object }
    const [written] = context.store.write([replacement(stored, marked)])
    return { waiting: written?.object ?? marked, last: object }
  } catch (error) {
    if (error instanceof StoreConflict) throw conflict(kind, stored.name, MODIFIED)
    throw error
  }
}

/** 68 years: a much later end would not fit into a date. */
const LONGEST_GRACE_SECONDS = 2 ** 31 - 1

/** Seconds; for an object already being deleted its current grace period, unless a shorter one is requested. */
function graceOf(kind: ResourceKind, object: JsonObject, { gracePeriodSeconds }: DeleteOptions): number {
  if (kind.gracePeriod === undefined) return 0
  const asked = gracePeriodSeconds === undefined ? undefined : allowedGrace(gracePeriodSeconds)
  if (!isBeingDeleted(object)) return allowedGrace(kind.gracePeriod(object, asked))
  const given = metaNumber(object, 'deletionGracePeriodSeconds')
  return asked === undefined ? given : Math.min(asked, given)
}

/** Negative periods become one second (registry/rest/delete.go, BeforeDelete). */
function allowedGrace(seconds: number): number {
  return seconds < 0 ? 1 : Math.min(seconds, LONGEST_GRACE_SECONDS)
}

/** Removes it at once; only a namespace may have to wait for its contents, or for its own finalizers. */
function remove(context: RegistryContext, kind: ResourceKind, stored: StoredObject): Deleted {
  context.store.write(removalWrites(context, kind, stored))
  return { waiting: context.store.get(stored)?.object, last: stored.object }
}

/** The Status for a removed object. */
export function deletedStatus(kind: ResourceKind, last: JsonObject): Status {
  const details = { ...detailsOf(kind, metaText(last, 'name')), uid: metaText(last, 'uid') }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}

function checkPreconditions(
  kind: ResourceKind,
  { object, name, revision }: StoredObject,
  options: DeleteOptions,
): void {
  const uid = metaText(object, 'uid')
  // kube-apiserver uses the kind here where it uses the resource elsewhere (registry/rest/delete.go, BeforeDelete).
  const named = { group: kind.group, plural: kind.kind }
  if (options.uid !== undefined && options.uid !== uid) {
    throw conflict(
      named,
      name,
      `the UID in the precondition (${options.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    )
  }
  if (options.resourceVersion !== undefined && options.resourceVersion !== String(revision)) {
    throw conflict(
      named,
      name,
      `the ResourceVersion in the precondition (${options.resourceVersion}) does not match the ResourceVersion in record (${revision}). The object might have been modified`,
    )
  }
}
