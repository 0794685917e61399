// Writes a change that was shown in a plan: only to the object that was shown, and only if what it is about is still as it was shown. Other parts of
// the object, its status above all, may have changed in the meantime.

import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { sameJson } from '../../kit/core/text/same-json.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { metadataOf } from './control-plane.ts'
import { Failure } from './waves.ts'

interface Planned {
  /** The part of the object that the plan is about. */
  part(object: JsonObject): unknown
  /** What it is now, for people. */
  describe(object: JsonObject): string
}

/** How often others may write between our read and write. */
const MAX_ATTEMPTS = 10

/**
 * @param specOf the merge patch of the spec, made for the object as it is now
 * @returns the object after it; rejects with a Failure
 */
export async function patchAsPlanned(
  client: ObjectClient,
  planned: JsonObject,
  specOf: (object: JsonObject) => JsonObject,
  fieldManager: string,
  { part, describe }: Planned,
): Promise<JsonObject> {
  const { name, uid } = metadataOf(planned)
  const at = { namespace: '', name }
  let object = planned
  for (let attempt = 1; ; attempt++) {
    const { resourceVersion } = metadataOf(object)
    try {
      const patch = { metadata: { ...(uid !== undefined && { uid }), resourceVersion }, spec: specOf(object) }
      return await client.patch(UPSTREAM_CLUSTERS, at, 'application/merge-patch+json', patch, { fieldManager })
    } catch (error) {
      const conflict = error instanceof StatusError && error.code === 409
      if (!conflict || attempt === MAX_ATTEMPTS) throw failureOf(error)
    }
    object = await client.get(UPSTREAM_CLUSTERS, at).catch((error: unknown) => Promise.reject(failureOf(error)))
    if (metadataOf(object).uid !== uid) {
      throw new Failure('not changed: it has been deleted and created again since the plan')
    }
    if (!sameJson(part(object), part(planned))) {
      throw new Failure(`not changed: another client has changed it since the plan: ${describe(object)}`)
    }
  }
}

function failureOf(error: unknown): Failure {
  if (!(error instanceof StatusError)) {
    return new Failure(`the API server does not answer, and may have changed it: ${errorMessage(error)}`)
  }
  return new Failure(error.code === 404 ? 'it was deleted' : `the API server refuses: ${error.message}`)
}
