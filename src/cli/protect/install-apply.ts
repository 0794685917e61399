// Writes the ValidatingWebhookConfiguration of protection to a worker cluster.

import { VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../api/kinds/foreign-kinds.ts'
import { type JsonObject, nameOf } from '../../api/kube/json-object.ts'
import { StatusError } from '../../api/kube/status.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import { UserError } from '../../api/validation/field-errors.ts'
import { metadataOf } from '../client/control-plane.ts'

const MAX_ATTEMPTS = 5
const NEEDED_RIGHTS =
  'the user of --kubeconfig needs get, create, update and delete of validatingwebhookconfigurations, and create of pods/eviction'

/** Labels and annotations of others stay; the webhooks are replaced. */
export async function putConfiguration(client: ObjectClient, object: JsonObject): Promise<'created' | 'up to date'> {
  const kind = VALIDATING_WEBHOOK_CONFIGURATIONS
  for (let attempt = 1; ; attempt++) {
    try {
      const before = await client.get(kind, { namespace: '', name: nameOf(object) })
      const metadata = { ...(before['metadata'] as object), ...(object['metadata'] as object) }
      await client.update(kind, { ...object, metadata: { ...metadata, labels: labelsOf(before, object) } })
      return 'up to date'
    } catch (error) {
      if (!(error instanceof StatusError) || attempt === MAX_ATTEMPTS) throw error
      if (error.code === 409) continue
      if (error.code !== 404) throw error
    }
    try {
      await client.create(kind, object)
      return 'created'
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 409) throw error
    }
  }
}

function labelsOf(before: JsonObject, object: JsonObject): Readonly<Record<string, string>> {
  return { ...metadataOf(before).labels, ...metadataOf(object).labels }
}

/** What withControlPlane says of a 403 is about other objects. */
export async function withRights<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 403) throw error
    throw new UserError(`the API server of the worker refuses: ${error.message}`, NEEDED_RIGHTS)
  }
}
