// A member of a federated cluster that is a stub: it has pods, for its read cache, and lets all users read them, unless told otherwise.

import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { replyReview, type StubUpstream, startStub } from '../upstreams/stub-upstream.ts'

export interface PodsMember {
  readonly stub: StubUpstream
  /** Who may read. Default: all users. */
  mayRead: (user: string) => boolean
  /** Watches of its read cache. */
  readonly watches: ReadonlySet<Http2ServerResponse>
  /** Makes a pod, or changes it, and tells its watches. */
  write(name: string, more?: { readonly note?: string; readonly labels?: object }): string
  stop(): Promise<void>
}

const FIRST_VERSION = 100

export async function startPodsMember(): Promise<PodsMember> {
  const pods = new Map<string, object>()
  const watches = new Set<Http2ServerResponse>()
  let version = FIRST_VERSION
  const answer = ({ url }: Http2ServerRequest, response: Http2ServerResponse): void => {
    response.setHeader('content-type', 'application/json')
    if (!url.startsWith('/api/v1/pods')) {
      response.writeHead(404)
      response.end('{}')
      return
    }
    if (/[?&]watch=/.test(url)) {
      watches.add(response)
      response.on('close', () => watches.delete(response))
      response.writeHead(200)
      response.write('')
      return
    }
    const metadata = { resourceVersion: String(version) }
    response.writeHead(200)
    response.end(JSON.stringify({ kind: 'PodList', apiVersion: 'v1', metadata, items: [...pods.values()] }))
  }
  const stub = await startStub(0, {}, '127.0.0.1', answer)
  const member: PodsMember = {
    stub,
    mayRead: () => true,
    watches,
    write: (name, { note = '', labels = {} } = {}) => {
      const type = pods.has(name) ? 'MODIFIED' : 'ADDED'
      const resourceVersion = String(++version)
      const metadata = { name, namespace: 'default', uid: name, resourceVersion, labels, annotations: { note } }
      const pod = { metadata, spec: { containers: [{ name: 'c', image: 'c' }] } }
      pods.set(name, pod)
      const event = { type, object: { kind: 'Pod', apiVersion: 'v1', ...pod } }
      for (const watch of watches) watch.write(`${JSON.stringify(event)}\n`)
      return resourceVersion
    },
    stop: () => stub.stop(),
  }
  stub.answerAccess = (seen) => replyReview(seen, { allowed: member.mayRead(String(seen.spec['user'])) })
  return member
}
