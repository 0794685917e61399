// Answers a route for all replicas (`?replicas=all`): the receiving replica queries the others and merges. One that does not respond within 2 s is
// named in the response.

import { type AdminCredential, adminFault, sendAdmin } from '../../../cli/io/admin-request.ts'
import type { PlainRequest, PlainResponse } from '../../../gateway/io/listener/http-plain.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import type { PartOf, Parts } from '../../../kit/core/merge/merge.ts'
import { REPLICAS_CHARGE } from '../../../kit/core/shares/charge.ts'
import { REPLICA } from '../../../kube/core/answers/answer-limits.ts'
import { type AdminRoute, type AdminUser, jsonResponse, type RouteAccess } from '../../io/server/route.ts'

/** Another replica. */
export interface ReplicaAddress {
  /** For people. */
  readonly name: string
  /** URL of its admin listener. */
  readonly url: URL
}

export interface Replicas {
  /** Name of this one. */
  readonly ownName: string
  /** The others. Rejects if they cannot be determined. */
  others(): Promise<readonly ReplicaAddress[]>
  credential(): Promise<AdminCredential>
  readonly log: Logger
}

interface MergedRoute<T> {
  readonly path: string
  readonly access: RouteAccess
  /** This replica's answer; must be JSON-serializable. */
  answer(request: PlainRequest, user: AdminUser): T | Promise<T>
  /** Parses another replica's answer. @throws if it is malformed */
  read(json: unknown): T
  /** @param parts of all replicas that responded, this one first */
  merge(parts: Parts<T>): T
}

/** The forwarded part of a request. */
type ForwardedRequest = Pick<PlainRequest, 'method' | 'path' | 'query' | 'signal'>

/** The others' answers, and which replicas did not respond. */
export interface Gathered<T> {
  readonly parts: readonly PartOf<T>[]
  readonly missing: readonly string[]
}

const ANSWER_MS = 2_000

/** JSON with `missing`: the replicas that did not respond. */
export function mergedRoute<T extends object>(replicas: Replicas, route: MergedRoute<T>): AdminRoute {
  const { path, access } = route
  const answer = async (request: PlainRequest, user: AdminUser): Promise<PlainResponse> => {
    if (request.query.get('replicas') !== 'all') return jsonResponse(await route.answer(request, user))
    const [part, others] = await Promise.all([
      route.answer(request, user),
      askOthers(replicas, request, (json) => route.read(json)),
    ])
    const merged = route.merge([{ replica: replicas.ownName, part }, ...others.parts])
    return jsonResponse({ ...merged, missing: others.missing })
  }
  return { path, method: 'GET', access, replicas: true, answer }
}

async function othersOf(replicas: Replicas, missing: string[]): Promise<readonly ReplicaAddress[]> {
  try {
    return await replicas.others()
  } catch (error) {
    replicas.log.debug('the replicas are not known', { reason: adminFault(error) })
    missing.push('(the list of replicas)')
    return []
  }
}

/**
 * Sends the request to the others as well, including a body.
 * @param read parses a response. @throws if it is unusable
 */
export async function askOthers<T>(
  replicas: Replicas,
  request: ForwardedRequest,
  read: (json: unknown) => T,
  body?: string,
): Promise<Gathered<T>> {
  const missing: string[] = []
  const others = await othersOf(replicas, missing)
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(ANSWER_MS)])
  const asked = others.map(async (other): Promise<readonly PartOf<T>[]> => {
    const { name } = other
    try {
      return [{ replica: name, part: read(await askOne(replicas, other, request, signal, body)) }]
    } catch (error) {
      const reason = adminFault(error)
      replicas.log.debug('a replica does not answer', { replica: name, path: request.path, reason })
      missing.push(name)
      return []
    }
  })
  return { parts: (await Promise.all(asked)).flat(), missing }
}

async function askOne(
  replicas: Replicas,
  { url }: ReplicaAddress,
  request: ForwardedRequest,
  signal: AbortSignal,
  body?: string,
): Promise<unknown> {
  const credential = await replicas.credential()
  const reply = await sendAdmin(targetOf(url, request), { method: request.method, body, credential, signal })
  if (reply.code === 200) return JSON.parse(await reply.countedText(REPLICA, REPLICAS_CHARGE))
  reply.discard()
  throw new Error(`answered ${reply.code}`)
}

/** The same request, for that replica alone. */
function targetOf(url: URL, { path, query }: ForwardedRequest): URL {
  const target = new URL(path, url)
  for (const [name, value] of query) if (name !== 'replicas') target.searchParams.append(name, value)
  return target
}
