// The UpstreamClusters that the arguments of a command choose, read from their API server: the one place for names, globs, selectors and --all.

import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import {
  type ClusterChoice,
  chooseClusters,
  listed,
  meansEverything,
  type ReadChoice,
  readChoice,
} from '../../gateway/core/choice/choose-clusters.ts'
import { isGlob } from '../../gateway/core/choice/glob.ts'
import { type JsonObject, nameOf } from '../../kit/api/json/json-object.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import type { ObjectClient, ObjectList } from '../../kube/api/object-client.ts'
import { StatusError } from '../../kube/api/status.ts'
import { isFileHere } from '../io/local-files.ts'
import { metadataOf } from './control-plane.ts'
import { federationOf } from './federated-members.ts'
import { inParallel } from './in-parallel.ts'

/** Arguments and flags of a command about clusters. */
export interface ClusterArguments {
  readonly clusters: readonly string[]
  readonly selector?: string
  /** Default false. */
  readonly all?: boolean
  readonly except?: readonly string[]
}

/** The one cluster that is named in full; undefined = another choice. */
export function onlyCluster({ clusters, selector, all = false, except = [] }: ClusterArguments): string | undefined {
  const [name] = clusters
  const other = clusters.length !== 1 || selector !== undefined || all || except.length > 0
  return name === undefined || other || isGlob(name) ? undefined : name
}

/** @throws {UserError} if nothing is chosen, or the choice contradicts itself */
export function readArguments({ clusters, selector, all = false, except = [] }: ClusterArguments): ReadChoice {
  const choice: ClusterChoice = { names: clusters, selector, all, except }
  if (clusters.length === 0 && selector === undefined && !all) {
    const fix = "name one or several, or give -l SELECTOR, a glob such as 'prod-*', or --all"
    throw new UserError('no cluster is named', fix)
  }
  return readChoice(choice)
}

export interface ChosenClusters {
  /** By name. */
  readonly objects: readonly JsonObject[]
  /** How many there are; undefined = the user may not list them. */
  readonly known: number | undefined
  /** All there are, with the version at which a watch of them can begin; undefined = they were read one by one. */
  readonly listed: ObjectList | undefined
}

/**
 * Reads all of them once: for many clusters one list is cheaper than each object alone.
 * @param changes whether the command changes them: then everything has to be chosen by --all
 * @throws {UserError} if something matches nothing, or more than is said
 */
export async function readChosen(client: ObjectClient, read: ReadChoice, changes: boolean): Promise<ChosenClusters> {
  const { names } = read.choice
  const { items, resourceVersion } = await listOrGet(client, read)
  const known = items.map(namedCluster)
  if (changes && meansEverything(read.choice)) {
    const fix = 'give --all instead, if all are meant'
    throw new UserError(`'*' is every UpstreamCluster, ${known.length} of them`, fix)
  }
  const replaced = names.filter((name) => !isGlob(name) && !known.some((one) => one.name === name)).find(isFileHere)
  if (replaced !== undefined) {
    const fix = `a file of this name is here: if the shell has expanded a pattern to it, quote the pattern: '${replaced.slice(0, 4)}*'`
    throw new UserError(`there is no UpstreamCluster ${JSON.stringify(replaced)}`, fix)
  }
  const chosen = chooseClusters(read, known)
  const listed = resourceVersion === '' ? undefined : { items, resourceVersion }
  return { objects: chosen.map(({ object }) => object), known: known.length, listed }
}

export interface ChosenMembers {
  /** Clusters with servers, by name. */
  readonly objects: readonly JsonObject[]
  /** What is wrong with the members of federated clusters, as sentences. */
  readonly faults: readonly string[]
}

/** The same for a command about what clusters with servers have: a federated cluster stands for its members. @throws {UserError} as `readChosen` */
export async function readChosenMembers(client: ObjectClient, read: ReadChoice): Promise<ChosenMembers> {
  const { items: first } = await listOrGet(client, read)
  const chosen = chooseClusters(read, first.map(namedCluster))
  const federations = chosen.flatMap(({ object }) => federationOf(object) ?? [])
  const names = new Set(first.map(nameOf))
  const unread = federations.flatMap(({ members }) =>
    members.map(({ cluster }) => cluster).filter((one) => !names.has(one)),
  )
  // They are there if the user may not list all.
  const more = await getEach(client, [...new Set(unread)])
  for (const object of more) names.add(nameOf(object))
  const known = [...first, ...more].map((object) => {
    return { ...namedCluster(object), members: federationOf(object)?.members.map(({ cluster }) => cluster) }
  })
  const faults = federations.flatMap(({ name, members }) =>
    members
      .filter(({ cluster }) => !names.has(cluster))
      .map(({ cluster }) => `there is no UpstreamCluster ${cluster}; correct spec.members of ${name}`),
  )
  return { objects: chooseClusters(read, known).map(({ object }) => object), faults }
}

function namedCluster(object: JsonObject): {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly object: JsonObject
} {
  const { name, labels = {} } = metadataOf(object)
  return { name, labels, object }
}

/** The objects of these names as they are now; those that are gone are missing. */
export async function readAgain(
  client: ObjectClient,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, JsonObject>> {
  const { items } = await client.list(UPSTREAM_CLUSTERS, '').catch(async (error: unknown) => {
    if (!isForbidden(error)) throw error
    return { items: await getEach(client, [...names]) }
  })
  const found = items.map((object) => [metadataOf(object).name, object] as const)
  return new Map(found.filter(([name]) => names.has(name)))
}

/** A user may have rights for some objects, by resourceNames, which no list is for: those have no common resourceVersion. */
async function listOrGet(client: ObjectClient, { choice }: ReadChoice): Promise<ObjectList> {
  const { names, except } = choice
  try {
    return await client.list(UPSTREAM_CLUSTERS, '')
  } catch (error) {
    const exact = names.length > 0 && ![...names, ...except].some(isGlob)
    if (!isForbidden(error) || !exact) throw error
    return { items: await getEach(client, names), resourceVersion: '' }
  }
}

/** @throws {UserError} naming all that may not be read */
async function getEach(client: ObjectClient, names: readonly string[]): Promise<readonly JsonObject[]> {
  const found: JsonObject[] = []
  const refused = new Map<string, string>()
  await inParallel(names, async (name) => {
    try {
      found.push(await client.get(UPSTREAM_CLUSTERS, { namespace: '', name }))
    } catch (error) {
      if (!(error instanceof StatusError)) throw error
      if (error.code === 404) return
      refused.set(name, error.message)
    }
  })
  const [first] = refused
  if (first === undefined) return found
  const message = `${listed([...refused.keys()].sort())} cannot be read: ${first[1]}`
  throw new UserError(message, 'leave them out, or ask for the right to get them')
}

function isForbidden(error: unknown): boolean {
  return error instanceof StatusError && error.code === 403
}
