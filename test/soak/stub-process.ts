// An upstream in a process of its own, so that it can be killed: `node stub-process.ts PORT`. Lists, objects, watches, and
// whatever is posted comes back.

import { setTimeout as sleep } from 'node:timers/promises'
import { reply, type SeenRequest, startStub } from '../harness/upstreams/stub-upstream.ts'

const LARGE = JSON.stringify({
  kind: 'PodList',
  items: Array.from({ length: 20_000 }, (_, i) => ({ name: `pod-${i}` })),
})
const SMALL = JSON.stringify({ kind: 'Pod', metadata: { name: 'p' } })
const EVENT = `${JSON.stringify({ type: 'ADDED', object: { kind: 'Pod' } })}\n`
const MS_BETWEEN_EVENTS = 50

const stub = await startStub(Number(process.argv[2]))
stub.answer = (request) => {
  stub.seen.length = 0 // not used here, and it would grow
  if (request.stream.destroyed) return
  if (request.method !== 'GET') echo(request)
  else if (request.path.includes('watch=1')) void watch(request)
  else reply(request, 200, request.path.endsWith('/pods') ? LARGE : SMALL)
}

function echo({ stream }: SeenRequest): void {
  stream.respond([':status', '201', 'content-type', 'application/json'])
  stream.pipe(stream)
}

async function watch({ stream }: SeenRequest): Promise<void> {
  stream.respond([':status', '200', 'content-type', 'application/json'])
  while (!stream.destroyed && !stream.closed) {
    stream.write(EVENT)
    await sleep(MS_BETWEEN_EVENTS)
  }
}
