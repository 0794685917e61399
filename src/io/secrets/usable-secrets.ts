// Which Secrets UpstreamClusters may refer to, whoever edits them: those whose owners name the UpstreamCluster in an annotation; without the
// annotation those of a few namespaces, and those that are labelled. Otherwise whoever may edit an UpstreamCluster could have any Secret that the gateway can read sent to a server of
// their choice. Namespaces of the list are watched; other Secrets are read one by one, and only labelled ones are reported.

import type { JsonObject } from '../../api/kube/json-object.ts'
import { OWN_NAMESPACE } from '../../api/kube/own-names.ts'
import type { ObjectClient } from '../../api/ports/object-client.ts'
import type { Logger } from '../../api/ports/ports.ts'
import {
  hasLabel,
  type KnownSecretData,
  NamedSecrets,
  type NamedSecretsOptions,
  UNREAD,
  USABLE_BY_ANNOTATION,
  usableBy,
} from './named-secrets.ts'

/** On a Secret, with the value "true": UpstreamClusters may refer to it, whatever its namespace. */
export const USABLE_LABEL = 'portcullis.io/usable-by-gateway'

/** They hold the keys of the shared CAs and of their tokens: whoever has them can impersonate the gateway. */
export const OWN_SECRETS = { serving: 'portcullis-serving-ca', control: 'portcullis-control-ca' } as const
const OWN_NAMES: ReadonlySet<string> = new Set(Object.values(OWN_SECRETS).map((name) => `${OWN_NAMESPACE}/${name}`))

export interface UsableSecretsOptions {
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

  /** For a Secret that may not be used, not even its existence is reported: whoever refers to it would learn that. */
  get(name: string, cluster: string): KnownSecretData {
    if (OWN_NAMES.has(name)) return { ...REFUSED, message: refusalOf(name, this.#options.namespaces, cluster) }
    const namespace = namespaceOf(name)
    const known = this.#groups.get(namespace)?.secrets.get(name)
    if (known === undefined) return UNREAD
    if (known.state === 'unread') return known
    if (known.usableBy !== undefined) {
      return known.usableBy.includes(cluster)
        ? known
        : { ...REFUSED, message: refusalOf(name, this.#options.namespaces, cluster) }
    }
    if (this.#usable.has(namespace)) return known
    if (known.state === 'present' && known.labelled) return known
    return { ...REFUSED, message: refusalOf(name, this.#options.namespaces, cluster) }
  }

  retain(name: string): void {
    const group = this.#groupOf(namespaceOf(name))
    group.users++
    group.secrets.retain(name)
  }

  release(name: string): void {
    const namespace = namespaceOf(name)
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
      label: USABLE_LABEL,
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

/** @param name `namespace/name` @param secret undefined = it does not exist, or its existence is not revealed */
export function isUsable(
  name: string,
  secret: JsonObject | undefined,
  namespaces: readonly string[],
  cluster: string,
): boolean {
  if (OWN_NAMES.has(name)) return false
  const { usableBy: clusters } = secret === undefined ? {} : usableBy(secret)
  if (clusters !== undefined) return clusters.includes(cluster)
  return namespaces.includes(namespaceOf(name)) || (secret !== undefined && hasLabel(secret, USABLE_LABEL))
}

const REFUSED: KnownSecretData = { ...UNREAD, state: 'refused' }

function namespaceOf(name: string): string {
  return name.slice(0, name.indexOf('/'))
}

/** @param name `namespace/name`. The same whether the Secret exists or not */
export function refusalOf(name: string, namespaces: readonly string[], cluster: string): string {
  if (OWN_NAMES.has(name)) return `Secret ${name} may not be used: it is the gateway's own`
  if (namespaces.includes(namespaceOf(name))) {
    return `Secret ${name} may not be used by UpstreamCluster ${cluster}: its annotation ${USABLE_BY_ANNOTATION} does not name it`
  }
  const known = namespaces.length === 0 ? 'none' : namespaces.join(', ')
  return (
    `Secret ${name} may not be used: namespace ${namespaceOf(name)} is not one of --secret-namespace (${known}), and no Secret of ` +
    `this name with the label ${USABLE_LABEL}=true, or the annotation ${USABLE_BY_ANNOTATION} that names UpstreamCluster ${cluster}, can be read there`
  )
}

/** @param name `namespace/name` */
export function refusalFix(name: string, cluster: string): string {
  if (OWN_NAMES.has(name)) return 'name another Secret'
  const [namespace = '', secret = ''] = name.split('/')
  return (
    `name a Secret that is released for it, or let the owner of this one name it: kubectl annotate secret ${secret} -n ${namespace} ` +
    `${USABLE_BY_ANNOTATION}=${cluster}; several UpstreamClusters have commas between them`
  )
}
