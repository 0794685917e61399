// The clusters that accept a user's credential, as the gateway says: for users who may not read UpstreamClusters.

import type { ConnectionOptions } from 'node:tls'
import { isRecord, recordOf } from '../../kit/api/json/object-shape.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { isDnsName } from '../../kit/api/validation/name-syntax.ts'
import { faultText, fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'

export interface UserCredential {
  /** Default: none. */
  readonly token?: string
  /** PEM. Default: none. */
  readonly certificate?: { readonly cert: string; readonly key: string }
}

export interface ReachableClusters {
  /** In alphabetical order. */
  readonly names: readonly string[]
  /** Clusters that verify logins themselves are missing. */
  readonly isIncomplete: boolean
}

const TIMEOUT_MS = 30_000
/** Thousands of names. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/**
 * @param server `https://HOST[:PORT]`, of the gateway itself
 * @param ca PEM; default: Node's CAs
 * @throws {UserError}
 */
export async function askReachableClusters(
  server: string,
  ca: string | undefined,
  { token, certificate }: UserCredential,
): Promise<ReachableClusters> {
  const tls: ConnectionOptions = { ...(ca !== undefined && { ca }), ...certificate }
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const { code, text } = await fetchBounded(`${server}/clusters`, { headers, tls, signal })
    .then(async (reply) => ({ code: reply.code, text: (await reply.whole(MAX_ANSWER_BYTES)).toString() }))
    .catch((error: unknown) => {
      const fault = signal.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : faultText(error)
      throw new UserError(
        `the gateway at ${server} does not say which clusters exist: ${fault}`,
        'check --server and --ca-file',
      )
    })
  if (code === 401) {
    throw new UserError(
      `no cluster that the gateway at ${server} can name accepts this credential`,
      'ask its operators for a list: clusters that verify logins themselves are not included',
    )
  }
  const names = code === 200 ? namesIn(text) : undefined
  if (names !== undefined) return names
  throw new UserError(
    `${server} does not say which clusters exist (${code})`,
    'give the address of the gateway itself as --server, and not the name of a cluster',
  )
}

/** undefined = another server has answered. */
function namesIn(text: string): ReachableClusters | undefined {
  const { kind, clusters, incomplete } = recordOf(parsed(text))
  if (kind !== 'ReachableClusters' || !Array.isArray(clusters)) return undefined
  const names = clusters.map((one: unknown) => (isRecord(one) ? one['name'] : undefined))
  // They become parts of URLs.
  if (!names.every((name) => typeof name === 'string' && isDnsName(name))) return undefined
  return { names: [...new Set(names as string[])].sort(), isIncomplete: incomplete !== false }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
