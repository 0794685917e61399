// Facts about the cluster that holds the objects: the CA of its client certificates, as kube-apiserver publishes it for extension API servers, and
// the gateway's own user there. Refreshed regularly: CAs are rotated.

import { isRecord, textOf } from '../../../kit/api/json/object-shape.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { errorMessage } from '../../../kit/api/validation/error-message.ts'
import { CONFIG_MAPS } from '../../../kube/api/kinds/foreign-kinds.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import type { PostReview } from './review-access.ts'

const AT = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const
const SELF = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const AGAIN_MS = 60_000
const AFTER_FAILURE_MS = 5_000

export class ClusterIdentity {
  readonly #client: Pick<ObjectClient, 'get'>
  readonly #post: PostReview
  readonly #log: Logger
  #clientCA = ''
  #ownUser = ''
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  #reported = ''

  constructor(client: Pick<ObjectClient, 'get'>, post: PostReview, log: Logger) {
    this.#client = client
    this.#post = post
    this.#log = log
  }

  /** PEM; '' = unknown, or the cluster accepts no client certificates. */
  get clientCA(): string {
    return this.#clientCA
  }

  /** '' = unknown. */
  get ownUser(): string {
    return this.#ownUser
  }

  /** Resolves after the first attempt, successful or not. */
  async start(): Promise<void> {
    const good = (await Promise.all([this.#readCA(), this.#readUser()])).every(Boolean)
    if (this.#stopped) return
    this.#timer = setTimeout(() => void this.start(), good ? AGAIN_MS : AFTER_FAILURE_MS).unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #readCA(): Promise<boolean> {
    try {
      const { data } = await this.#client.get(CONFIG_MAPS, AT)
      this.#clientCA = textOf(isRecord(data) ? data['client-ca-file'] : undefined)
      this.#reported = ''
      return true
    } catch (error) {
      const reason = errorMessage(error)
      if (reason !== this.#reported)
        this.#log.warn(`client certificates cannot log in: ConfigMap ${AT.namespace}/${AT.name} cannot be read`, {
          reason,
        })
      this.#reported = reason
      return false
    }
  }

  async #readUser(): Promise<boolean> {
    try {
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
      const { body } = await this.#post(SELF, JSON.stringify(review))
      const { status }: { status?: unknown } = JSON.parse(body)
      const info = isRecord(status) ? status['userInfo'] : undefined
      this.#ownUser = textOf(isRecord(info) ? info['username'] : undefined)
      return this.#ownUser !== ''
    } catch {
      // Before Kubernetes 1.28: other replicas need a permission of their own.
      return false
    }
  }
}
