// A stub's answers for traffic during restarts: small objects, and watches of events with consecutive resourceVersions.

import { reply, type SeenRequest, type StubUpstream } from '../upstreams/stub-upstream.ts'

export interface NumberedEvents {
  /** The version of the newest event. */
  readonly version: number
  stop(): void
}

const EVERY_MS = 20

/** From now on the stub answers requests with 200, and `?watch=1&resourceVersion=N` with the events after N and each further one. */
export function numberEvents(stub: StubUpstream): NumberedEvents {
  const watches = new Set<SeenRequest['stream']>()
  let version = 1
  stub.answer = (request) => {
    const { path, stream } = request
    const [, since] = /[?&]watch=1&resourceVersion=(\d+)$/.exec(path) ?? []
    if (since === undefined) {
      reply(request, 200, '{"kind":"Stub"}')
      return
    }
    stream.respond([':status', '200', 'content-type', 'application/json'])
    for (let missed = Number(since) + 1; missed <= version; missed++) stream.write(eventOf(missed))
    watches.add(stream)
    stream.once('close', () => watches.delete(stream))
  }
  const timer = setInterval(() => {
    version++
    for (const stream of watches) stream.write(eventOf(version))
  }, EVERY_MS)
  return {
    get version() {
      return version
    },
    stop: () => clearInterval(timer),
  }
}

function eventOf(version: number): string {
  const metadata = { name: 'counter', resourceVersion: String(version) }
  return `${JSON.stringify({ type: 'MODIFIED', object: { kind: 'ConfigMap', apiVersion: 'v1', metadata } })}\n`
}
