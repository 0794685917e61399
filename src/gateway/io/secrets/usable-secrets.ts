// The Secrets that UpstreamClusters refer to, as far as released to each (secret-release.ts). Namespaces from --secret-namespace are watched; other
// Secrets are read separately.

import type { Logger } from '../../../kit/api/ports.ts'
import type { ObjectClient } from '../../../kube/api/object-client.ts'
import { type KnownSecretData, NamedSecrets, type NamedSecretsOptions, UNREAD } from './named-secrets.ts'
import { isOwnSecret, namespaceOfSecret, secretRefusal, secretReleaseOf } from './secret-release.ts'

/** A Secret as seen by one UpstreamCluster. */
export interface UsableSecret extends KnownSecretData {
  /** It is released in the way that ends with the next minor version. */
  readonly shared?: boolean
  /** It exists, but is not released to this UpstreamCluster: bytes read earlier must not be used any longer either. */
  readonly withheld?: boolean
}

interface UsableSecretsOptions {
  readonly client: ObjectClient
  readonly log: Logger
  /** The state of these (`namespace/name`) changed. */
  readonly onChange: (names: readonly string[]) => void
  readonly refreshMs: number
  /** Namespaces whose Secrets need no label. */
  readonly namespaces: readonly string[]
}

interface Group {
  readonly secrets: NamedSecrets
  /** Number of references to Secrets of the namespace. */
  users: number
}

export class UsableSecrets {
  readonly #options: UsableSecretsOptions
  readonly #usable: ReadonlySet<string>
  readonly #groups = new Map<string, Group>()
  readonly #ending = new Set<Promise<void>>()

  constructor(options: UsableSecretsOptions) {
    this.#options = options
    this.#usable = new Set(options.namespaces)
  }

  /** For a Secret that must not be used, not even its existence is reported: the object's editor would learn it. */
  get(name: string, cluster: string): UsableSecret {
    const { namespaces } = this.#options
    const known = this.#groups.get(namespaceOfSecret(name))?.secrets.get(name) ?? UNREAD
    if (known.state === 'unread' && !isOwnSecret(name)) return known
    const isThere = known.state === 'present'
    const release = secretReleaseOf(name, isThere ? known : undefined, namespaces, cluster)
    if (release === 'none') return { ...REFUSED, message: secretRefusal(name, namespaces, cluster), withheld: isThere }
    return release === 'all' && isThere ? { ...known, shared: true } : known
  }

  retain(name: string): void {
    const group = this.#groupOf(namespaceOfSecret(name))
    group.users++
    group.secrets.retain(name)
  }

  release(name: string): void {
    const namespace = namespaceOfSecret(name)
    const group = this.#groups.get(namespace)
    if (group === undefined) return
    group.secrets.release(name)
    if (--group.users > 0) return
    this.#groups.delete(namespace)
    this.#end(group.secrets)
  }

  async stop(): Promise<void> {
    for (const { secrets } of this.#groups.values()) this.#end(secrets)
    await Promise.all(this.#ending)
  }

  #groupOf(namespace: string): Group {
    const known = this.#groups.get(namespace)
    if (known !== undefined) return known
    const { client, log, onChange, refreshMs } = this.#options
    const options: NamedSecretsOptions = {
      client,
      log,
      onChange,
      refreshMs,
      namespace,
      watched: this.#usable.has(namespace),
    }
    const group = { secrets: new NamedSecrets(options), users: 0 }
    this.#groups.set(namespace, group)
    return group
  }

  #end(secrets: NamedSecrets): void {
    const ending = secrets.stop()
    this.#ending.add(ending)
    // Never rejects.
    void ending.then(() => this.#ending.delete(ending))
  }
}

const REFUSED: KnownSecretData = { ...UNREAD, state: 'refused' }
