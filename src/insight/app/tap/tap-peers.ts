// The same tap at the other replicas: their lines, until they end or are lost.

import { type AdminCredential, sendAdmin } from '../../../cli/io/admin-request.ts'

/** Which other replicas there are, and who this one is for them. */
export interface TapReplicas {
  /** Rejects when nobody can say. */
  others(): Promise<readonly { readonly name: string; readonly url: URL }[]>
  credential(): Promise<AdminCredential>
}

export interface TapPeer {
  readonly name: string
  /** Throws when it does not answer, refuses or breaks off. */
  lines(signal: AbortSignal): AsyncGenerator<string>
}

/** For the head of its answer. */
const ANSWER_MS = 2_000
/** Each replica says something every five seconds: one that is silent for longer is lost, whatever its connection says. */
const SILENT_MS = 15_000
const MAX_LINE = 64 * 1024

/** Of a tap with this query, for `user`. Rejects when nobody can say which replicas there are. */
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
      // Only while a line is waited for: a reader that takes its time is not the replica's fault.
      const next = await within(SILENT_MS, 'it has said nothing for too long', lines.next())
      if (next.done) return
      yield next.value
    }
  } finally {
    lost.abort()
  }
}
