// Client for commands that change objects in their API server, by kubeconfig: the embedded API server or CRDs of a cluster.

import { UPSTREAM_CLUSTERS } from '../../gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../kit/api/json/json-object.ts'
import { SILENT } from '../../kit/api/ports.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nearestName } from '../../kit/api/validation/nearest-name.ts'
import type { ObjectClient } from '../../kube/api/object-client.ts'
import type { ResourceKind } from '../../kube/api/resource-kind.ts'
import { StatusError } from '../../kube/api/status.ts'
import { createKubeClient } from '../../kube/io/client.ts'
import { contextsWith } from '../../kube/io/contexts.ts'
import type { CommandOutput } from '../command/output.ts'

export interface ControlPlaneOptions extends CommandOutput {
  /** Default: as kubectl finds it. */
  readonly kubeconfig?: string
  /** Default: the kubeconfig's current one. */
  readonly context?: string
  /** Used instead of a kubeconfig, in tests. */
  readonly client?: ObjectClient
  /** Rights that the command needs, for the message if they are missing. Default: get, list, patch of upstreamclusters. */
  readonly needs?: string
  /** The kind that is read first, for the message if the API server doesn't have it. Default: UpstreamCluster, if `needs` names it. */
  readonly kind?: ResourceKind
  /** Hint for when no API server answers. Default: none. */
  readonly away?: string
  /** Called before an error is printed. @returns whether something else is done instead. Default: nothing */
  readonly instead?: (error: unknown) => boolean
  /** The expected API server, for the message if another one answers. Default: the gateway's. */
  readonly owner?: string
}

/** The part of metadata that commands use. */
interface ServedMetadata {
  readonly name: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly annotations?: Readonly<Record<string, string>>
  readonly labels?: Readonly<Record<string, string>>
}

/** Runs `action` with a client, and the server's URL if known from a kubeconfig; a refused or unanswered call is one line and exit code 1. */
export async function withControlPlane(
  options: ControlPlaneOptions,
  action: (client: ObjectClient, server: string) => Promise<number>,
): Promise<number> {
  let close = (): Promise<void> => Promise.resolve()
  try {
    if (options.client !== undefined) return await action(options.client, '')
    const { kubeconfig = '', context } = options
    const client = createKubeClient({
      kubeconfigFile: kubeconfig,
      log: SILENT,
      ...(context !== undefined && { context }),
    })
    close = () => client.close()
    return await action(client, client.server)
  } catch (error) {
    if (options.instead?.(error) === true) return 1
    const kind = error instanceof StatusError && isUnknownKind(error) ? kindMeant(options) : undefined
    const text =
      kind === undefined
        ? textOf(error, options.needs ?? DEFAULT_NEEDS, options.away)
        : await wrongServer(options, kind, isNotFederated(error) ? error.message : '')
    options.err(`error: ${text}\n`)
    return 1
  } finally {
    await close()
  }
}

const DEFAULT_NEEDS = 'get, list and patch of upstreamclusters'

/**
 * Whether this user has no UpstreamClusters to read: no right, another API server in the kubeconfig, or no kubeconfig. An API server that gives no answer
 * is something else.
 */
export function mayNotRead(error: unknown, { kubeconfig, context }: ControlPlaneOptions): boolean {
  if (error instanceof StatusError) return error.code === 401 || error.code === 403 || isUnknownKind(error)
  return error instanceof UserError && kubeconfig === undefined && context === undefined
}

/** A 404 for an unknown path has no details; a 404 for a missing object names it. */
function isUnknownKind({ code, status }: StatusError): boolean {
  return code === 404 && status.details?.kind === undefined && status.details?.name === undefined
}

/** The kind of the failed call; undefined = unknown. */
function kindMeant({ kind, needs = DEFAULT_NEEDS }: ControlPlaneOptions): ResourceKind | undefined {
  return kind ?? (needs.includes(UPSTREAM_CLUSTERS.plural) ? UPSTREAM_CLUSTERS : undefined)
}

/** A federated cluster has answered, which shows other kinds only. Its Status has nothing for programs that tells it from an unknown path. */
export function isNotFederated(error: unknown): error is StatusError {
  return error instanceof StatusError && isUnknownKind(error) && error.message.includes('spec.federation.resources')
}

/** @param refusal of a federated cluster; '' = another API server */
async function wrongServer(options: ControlPlaneOptions, kind: ResourceKind, refusal: string): Promise<string> {
  const { kubeconfig: kubeconfigFile = '', context, owner = 'the gateway', client } = options
  const asked = { kubeconfigFile, ...(context !== undefined && { context }) }
  const contexts = client === undefined ? await contextsWith(kind, asked, SILENT) : []
  const others =
    contexts.length === 0 ? 'see --kubeconfig and --context' : `these contexts have: ${contexts.join(', ')}`
  if (refusal !== '') return `the API server refuses: ${refusal}; ${others}`
  return `this API server has no ${kind.kind}s; is it the one of ${owner}? ${others}`
}

function textOf(error: unknown, needs: string, away = ''): string {
  if (error instanceof UserError) return `${error.message}; ${error.fix}`
  if (error instanceof StatusError) return `the API server refuses: ${error.message}${fixOf(error, needs)}`
  if (!(error instanceof Error)) return String(error)
  return `the API server does not answer: ${error.message}; is --kubeconfig the right one, and the server up?${away}`
}

function fixOf({ code }: StatusError, needs: string): string {
  if (code === 401) return '; the credential of the kubeconfig is not accepted'
  if (code === 403) return `; the user of the kubeconfig needs ${needs}`
  return ''
}

/** @throws {UserError} that lists the existing clusters */
export async function getCluster(client: ObjectClient, name: string): Promise<JsonObject> {
  try {
    return await client.get(UPSTREAM_CLUSTERS, { namespace: '', name })
  } catch (error) {
    if (!(error instanceof StatusError) || error.code !== 404) throw error
    const { items } = await client.list(UPSTREAM_CLUSTERS, '')
    const names = items.map((item) => metadataOf(item).name).sort()
    if (names.length === 0)
      throw new UserError(`there is no UpstreamCluster ${JSON.stringify(name)}`, 'this API server has none')
    const meant = nearestName(name, names)
    const known = `known: ${names.join(', ')}`
    throw new UserError(
      `there is no UpstreamCluster ${JSON.stringify(name)}`,
      meant === '' ? known : `did you mean ${meant}? ${known}`,
    )
  }
}

export function metadataOf(object: JsonObject): ServedMetadata {
  return object['metadata'] as ServedMetadata
}

/** `--timeout`, `--ttl`: a Go duration above zero. @throws {UserError} */
export function readPositiveDuration(flag: string, text: string, parse: (text: string) => number | undefined): number {
  const ms = parse(text)
  if (ms === undefined || ms <= 0) {
    throw new UserError(`${flag} ${JSON.stringify(text)} is not a positive duration`, `write ${flag} 30m, 90s or 1h30m`)
  }
  return ms
}
