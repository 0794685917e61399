// The same tap at the other replicas: their lines, until they end or are lost.

import { type AdminCredential, sendAdmin } from '../../../cli/io/admin-request.ts'

/** The other replicas, and this one's credential for them. */
export interface TapReplicas {
  /** Rejects if they cannot be determined. */
  others(): Promise<readonly { readonly name: string; readonly url: URL }[]>
  credential(): Promise<AdminCredential>
}

export interface TapPeer {
  readonly name: string
  /** Throws if it does not respond, refuses or breaks off. */
  lines(signal: AbortSignal): AsyncGenerator<string>
}

/** Timeout of the response head. */
const ANSWER_MS = 2_000
/** Each replica sends something every five seconds: one that is silent for longer is lost, whatever the state of its connection. */
const SILENT_MS = 15_000
const MAX_LINE = 64 * 1024

/** For a tap with this query, on behalf of `user`. Rejects if the replicas cannot be determined. */
export async function tapPeers(
  replicas: TapReplicas,
  query: URLSearchParams,
  user: string,
): Promise<readonly TapPeer[]> {
  const asked = new URLSearchParams(query)
  asked.delete('replicas')
  asked.set('onBehalfOf', user)
  const others = await replicas.others()
  return others.map(({ name, url }) => ({
    name,
    lines: (signal) => peerLines(new URL(`/api/v1/tap?${asked}`, url), replicas, signal),
  }))
}

async function* peerLines(url: URL, replicas: TapReplicas, signal: AbortSignal): AsyncGenerator<string> {
  const lost = new AbortController()
  const within = async <T>(ms: number, what: string, pending: Promise<T>): Promise<T> => {
    const late = setTimeout(() => lost.abort(new Error(what)), ms)
    try {
      return await pending
    } catch (error) {
      throw lost.signal.aborted ? lost.signal.reason : error
    } finally {
      clearTimeout(late)
    }
  }
  const credential = await replicas.credential()
  const sent = { method: 'GET', body: undefined, credential, signal: AbortSignal.any([signal, lost.signal]) }
  const reply = await within(ANSWER_MS, 'it does not answer', sendAdmin(url, sent))
  if (reply.code !== 200) {
    lost.abort()
    throw new Error(`it answers ${reply.code}`)
  }
  const lines = reply.lines(MAX_LINE)
  try {
    for (;;) {
      // Only while waiting for a line: a slow reader is not the replica's fault.
      const next = await within(SILENT_MS, 'it has been silent for too long', lines.next())
      if (next.done) return
      yield next.value
    }
  } finally {
    lost.abort()
  }
}
