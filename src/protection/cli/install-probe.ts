// Checks whether the kube-apiserver of a worker cluster reaches the protection webhook: a temporary configuration matches one special
// eviction, a dry run for a pod that doesn't exist. Done first, because an unreachable webhook would block every deletion. (A dry-run
// eviction is reviewed before the pod is looked up: kubernetes/pkg/registry/core/pod/storage/eviction.go.)

import { nameOf } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { foreignKind, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { PROBE_ANSWER, PROBE_LABEL } from '../core/quota/review-subject.ts'
import { PROBE_NAME, probeConfiguration, type WebhookAddress } from './install-manifest.ts'

interface ProbeDeps {
  readonly client: ObjectClient
  readonly address: WebhookAddress
  readonly timeoutMs: number
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Between two attempts. Default 250 ms. */
  readonly pollMs?: number
}

const NAMESPACE = 'default'

/** Resolves once it does. @throws {UserError} with the last problem on timeout */
export async function probeWebhook({ client, address, timeoutMs, now, pollMs = 250 }: ProbeDeps): Promise<void> {
  const deadlineMs = now() + timeoutMs
  const id = `portcullis-probe-${now().toString(36)}`
  const configuration = probeConfiguration(address, id)
  await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, configuration)
  try {
    for (;;) {
      const trouble = await evict(client, id)
      if (trouble === '') return
      if (now() >= deadlineMs) throw unreachable(trouble)
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
  } finally {
    await client
      .delete(VALIDATING_WEBHOOK_CONFIGURATIONS, { namespace: '', name: nameOf(configuration) })
      .catch(ignoreMissing)
  }
}

/** The problem; '' if the webhook answered as expected. @throws if the probe itself is not allowed */
async function evict(client: ObjectClient, name: string): Promise<string> {
  const plural = `pods/${name}/eviction`
  const kind = foreignKind({ group: '', version: 'v1', kind: 'Eviction', plural, namespaced: true })
  try {
    await client.create(kind, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { namespace: NAMESPACE, name, labels: { [PROBE_LABEL]: name } },
      deleteOptions: { dryRun: ['All'] },
    })
  } catch (error) {
    if (!(error instanceof StatusError)) throw error
    const said = error.message
    if (said.includes(`"${PROBE_NAME}" denied the request: ${PROBE_ANSWER}`)) return ''
    if (said.includes('denied the request') || said.includes('failed calling webhook')) return withoutToken(said)
    // The API server doesn't know the configuration yet.
    if (error.code === 404) return 'the API server has not called the webhook'
    throw error
  }
  return 'the API server has not called the webhook'
}

/** The message of a failed call contains its URL. */
function withoutToken(text: string): string {
  return text.replace(/[0-9a-f]{64}/g, '...').replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '...')
}

function unreachable(trouble: string): UserError {
  const fix = 'nothing was changed; fix it and try again, or see what would be applied: --print'
  return new UserError(`the webhook does not answer the API server of the worker: ${trouble}`, fix)
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof StatusError && error.code === 404)) throw error
}
