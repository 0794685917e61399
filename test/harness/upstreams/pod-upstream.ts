// A stub upstream with pods: reads, lists, deletions and evictions as kube-apiserver answers them, as far as protection sees.

import type { Settings } from 'node:http2'
import { reply, replyReview, type SeenRequest, type StubUpstream, startStub } from './stub-upstream.ts'

export interface StubPod {
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string; readonly uid: string }
  readonly status: object
}

export interface SeenWrite {
  readonly method: string
  readonly path: string
  readonly user: string
  readonly contentType: string
  readonly contentLength: string
  readonly body: Buffer
  readonly request: SeenRequest
}

export interface PodUpstream {
  readonly stub: StubUpstream
  readonly pods: Map<string, StubPod>
  /** Deletions and evictions, with their bodies. */
  readonly writes: SeenWrite[]
  /** Reads and lists by the gateway. */
  readonly reads: SeenRequest[]
  /** Instead of the usual answer to a deletion or eviction; false = as usual. */
  answerWrite: (write: SeenWrite) => boolean
  /** Instead of the usual answer to a read; false = as usual. */
  answerRead: (request: SeenRequest) => boolean
  /** Whether a SubjectAccessReview is allowed. */
  allows: (attributes: Readonly<Record<string, unknown>>) => boolean
  add(name: string, metadata?: Readonly<Record<string, unknown>>): StubPod
}

export const READY: object = {
  phase: 'Running',
  conditions: [
    { type: 'PodScheduled', status: 'True' },
    { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
  ],
}

/** @param settings of HTTP/2, where they are not as usual */
export async function startPodUpstream(settings: Settings = {}): Promise<PodUpstream> {
  const stub = await startStub(0, settings)
  const upstream: PodUpstream = {
    stub,
    pods: new Map(),
    writes: [],
    reads: [],
    answerWrite: () => false,
    answerRead: () => false,
    allows: () => true,
    add(name, metadata = {}) {
      const own = { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '100', labels: { app: 'a' } }
      const pod: StubPod = { metadata: { ...own, ...metadata }, status: READY }
      upstream.pods.set(name, pod)
      return pod
    },
  }
  stub.answerAccess = (seen) => {
    const attributes = seen.spec['resourceAttributes'] as Record<string, unknown>
    replyReview(seen, { allowed: upstream.allows(attributes), reason: 'because' })
  }
  stub.answer = (request) => {
    if (request.method === 'GET') {
      upstream.reads.push(request)
      if (!upstream.answerRead(request)) read(upstream, request)
    } else whole(request, (body) => write(upstream, request, body))
  }
  return upstream
}

function whole(request: SeenRequest, then: (body: Buffer) => void): void {
  const chunks: Buffer[] = []
  request.stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.stream.on('end', () => then(Buffer.concat(chunks)))
}

function write(upstream: PodUpstream, request: SeenRequest, body: Buffer): void {
  const value = (name: string): string => request.values(name).join('; ')
  const seen: SeenWrite = {
    method: request.method,
    path: request.path,
    user: value('impersonate-user'),
    contentType: value('content-type'),
    contentLength: value('content-length'),
    body,
    request,
  }
  upstream.writes.push(seen)
  if (upstream.answerWrite(seen)) return
  const url = new URL(request.path, 'https://stub')
  const selected = /metadata\.name=([^,]+)/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1]
  const name = url.pathname.split('/')[6] ?? selected ?? ''
  const pod = upstream.pods.get(name)
  upstream.pods.delete(name)
  if (request.method === 'POST') reply(request, 201, '{"kind":"Status","status":"Success"}')
  else if (selected === undefined) reply(request, pod ? 200 : 404, JSON.stringify(pod ?? statusOf(404, 'NotFound')))
  else reply(request, 200, JSON.stringify({ kind: 'PodList', apiVersion: 'v1', items: pod ? [pod] : [] }))
}

function read(upstream: PodUpstream, request: SeenRequest): void {
  const url = new URL(request.path, 'https://stub')
  const name = url.pathname.split('/')[6]
  if (name !== undefined) {
    const pod = upstream.pods.get(name)
    reply(request, pod ? 200 : 404, JSON.stringify(pod ?? statusOf(404, 'NotFound')))
    return
  }
  const all = [...upstream.pods.values()]
  const from = Number(url.searchParams.get('continue') ?? '0')
  const limit = Number(url.searchParams.get('limit') ?? '0') || all.length
  const more = from + limit < all.length ? { continue: String(from + limit) } : {}
  const metadata = { resourceVersion: '500', ...more }
  reply(
    request,
    200,
    JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata, items: all.slice(from, from + limit) }),
  )
}

export function statusOf(code: number, reason: string): object {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `upstream says ${reason}`,
    reason,
    code,
  }
}
