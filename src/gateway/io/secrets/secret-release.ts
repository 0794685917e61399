// The one rule for which UpstreamClusters may use a Secret. The editor of an UpstreamCluster decides where its credentials are sent, so the Secret's
// owner names the UpstreamClusters. Releasing to all of them, by namespace or label, ends with the next minor version.

import type { JsonObject } from '../../../kit/api/json/json-object.ts'
import { isRecord, recordOf, textOf } from '../../../kit/api/json/object-shape.ts'
import type { FieldErrors } from '../../../kit/api/validation/field-errors.ts'
import { isDnsName } from '../../../kit/api/validation/name-syntax.ts'
import { OWN_NAMESPACE } from '../../../kube/api/own-names.ts'

/** On a Secret: comma-separated names of the UpstreamClusters that may refer to it. All others may not. */
export const USABLE_BY_ANNOTATION = 'portcullis.io/usable-by'
/** On a Secret without the annotation, with the value "true": every UpstreamCluster may refer to it, whatever its namespace. */
const USABLE_LABEL = 'portcullis.io/usable-by-gateway'

/** The keys of the shared CAs and of their tokens, which would allow impersonating the gateway. */
export const OWN_SECRETS = { serving: 'portcullis-serving-ca', control: 'portcullis-control-ca' } as const
const OWN_NAMES: ReadonlySet<string> = new Set(Object.values(OWN_SECRETS).map((name) => `${OWN_NAMESPACE}/${name}`))

/** The Secret owner's statement about who may refer to it. */
export interface ReleaseTerms {
  /** Whether it has the label. */
  readonly labelled: boolean
  /** UpstreamClusters named by the annotation; absent = no annotation. */
  readonly usableBy?: readonly string[]
}

/** `named`: to this UpstreamCluster. `all`: to all of them, in the way that ends with the next minor version. `none`: it must not refer to it. */
type Release = 'named' | 'all' | 'none'

/**
 * @param name `namespace/name`
 * @param terms undefined = the Secret does not exist, or could not be read
 * @param namespaces whose Secrets need no label
 */
export function secretReleaseOf(
  name: string,
  terms: ReleaseTerms | undefined,
  namespaces: readonly string[],
  cluster: string,
): Release {
  if (isOwnSecret(name)) return 'none'
  if (terms?.usableBy !== undefined) return terms.usableBy.includes(cluster) ? 'named' : 'none'
  return namespaces.includes(namespaceOfSecret(name)) || terms?.labelled === true ? 'all' : 'none'
}

export function releaseTerms({ metadata }: JsonObject): ReleaseTerms {
  const { labels, annotations } = recordOf(metadata)
  const labelled = isRecord(labels) && Object.hasOwn(labels, USABLE_LABEL) && labels[USABLE_LABEL] === 'true'
  if (!isRecord(annotations) || !Object.hasOwn(annotations, USABLE_BY_ANNOTATION)) return { labelled }
  const names = textOf(annotations[USABLE_BY_ANNOTATION]).split(',')
  return { labelled, usableBy: names.map((name) => name.trim()).filter((name) => name !== '') }
}

/** @param name `namespace/name` */
export function isOwnSecret(name: string): boolean {
  return OWN_NAMES.has(name)
}

/** @param name `namespace/name` */
export function namespaceOfSecret(name: string): string {
  return name.slice(0, name.indexOf('/'))
}

/** @param name `namespace/name`. The message is the same whether the Secret exists or not */
export function secretRefusal(name: string, namespaces: readonly string[], cluster: string): string {
  if (isOwnSecret(name)) return `Secret ${name} may not be used: it is the gateway's own`
  if (namespaces.includes(namespaceOfSecret(name))) {
    return `Secret ${name} may not be used by UpstreamCluster ${cluster}: its annotation ${USABLE_BY_ANNOTATION} does not name it`
  }
  const known = namespaces.length === 0 ? 'none' : namespaces.join(', ')
  return (
    `Secret ${name} may not be used: namespace ${namespaceOfSecret(name)} is not one of --secret-namespace (${known}), and no Secret of ` +
    `this name with the annotation ${USABLE_BY_ANNOTATION} that names UpstreamCluster ${cluster} can be read there`
  )
}

/** @param name `namespace/name` */
export function secretRefusalFix(name: string, cluster: string): string {
  if (isOwnSecret(name)) return 'name another Secret'
  return (
    `name a Secret that is released for it, or let the owner of this one name it${howToName(name, [cluster])}; several names have commas ` +
    'between them, wildcards mean nothing'
  )
}

/** Warns once about each Secret of an object that is released to all UpstreamClusters. */
export class SharedReleases {
  readonly #cluster: string
  readonly #out: FieldErrors
  readonly #told = new Set<string>()

  constructor(cluster: string, out: FieldErrors) {
    this.#cluster = cluster
    this.#out = out
  }

  /** @param path of the reference @param name `namespace/name` */
  add(path: string, name: string): void {
    if (this.#told.has(name)) return
    this.#told.add(name)
    // In a review a warning has at most 250 characters.
    const fix = `annotate it for all that use it, with commas: ${USABLE_BY_ANNOTATION}=${this.#cluster}`
    this.#out.warning(path, `${BEFORE_NAME}${name}${SHARED}`, fix)
  }
}

const SHARED = ' is released to all UpstreamClusters, which ends with the next minor version'
const BEFORE_NAME = 'Secret '

/** The Secret (`namespace/name`) that a SharedReleases warning is about; '' = another problem. */
export function sharedReleaseOf({ message }: { readonly message: string }): string {
  const isOne = message.startsWith(BEFORE_NAME) && message.endsWith(SHARED)
  return isOne ? message.slice(BEFORE_NAME.length, -SHARED.length) : ''
}

/** @param name `namespace/name` @param clusters all known clusters that use it */
export function sharedReleaseFix(name: string, clusters: readonly string[]): string {
  return `name all that use it${howToName(name, clusters)}`
}

/**
 * Without --overwrite: run for one cluster, it must not take the Secret away from those already in the annotation. Names made up by an editor must
 * not appear in a command that operators copy.
 */
function howToName(name: string, clusters: readonly string[]): string {
  const [namespace = '', secret = ''] = name.split('/')
  if (![secret, namespace, ...clusters].every(isDnsName)) return `, in its annotation ${USABLE_BY_ANNOTATION}`
  return `: kubectl annotate secret ${secret} -n ${namespace} ${USABLE_BY_ANNOTATION}=${clusters.join(',')}`
}
