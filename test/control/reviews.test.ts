// What one client can make the control port do, or hold, authenticated or not.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { Query } from '../../src/apiserver/http/query.ts'
import { MAX_BODY_BYTES } from '../../src/apiserver/http/read-body.ts'
import { readWatchOptions } from '../../src/apiserver/list/options.ts'
import { createControlHandler, MAX_ALL_BODY_BYTES, MAX_WATCHES_PER_USER } from '../../src/apiserver/server.ts'
import { WatchStream } from '../../src/apiserver/watch-stream.ts'
import { UPSTREAM_CLUSTERS } from '../../src/gateway/api/upstream-cluster-kind.ts'
import type { JsonObject } from '../../src/kit/api/json/json-object.ts'
import { ANSWER_WATER_BYTES, type HeaderList, type Peer, type Stream } from '../../src/kit/api/stream.ts'
import type { ResourceKind } from '../../src/kube/api/resource-kind.ts'
import { issueControlCertificate } from '../../src/pki/io/control-pki.ts'
import { issueControlToken } from '../../src/pki/io/control-tokens.ts'
import { ControlClient, cluster, type Json, UC } from '../harness/clients/control-client.ts'
import { h2Connect, h2Open, h2Request } from '../harness/clients/h2-client.ts'
import { startControl, type TestControl } from '../harness/gateways/control.ts'
import { waitFor } from '../harness/wait.ts'

const REVIEWS = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
let control: TestControl
let admin: ControlClient
/** An authenticated user without a role. */
let roleless: ControlClient
const sockets: TLSSocket[] = []

before(async () => {
  control = await startControl()
  admin = new ControlClient(control, { cert: control.admin })
  const user = { user: 'nobody', groups: [], ttlSeconds: 3600, nowMs: Date.now() }
  roleless = new ControlClient(control, { token: issueControlToken(control.tokenKey, user) })
})
after(async () => {
  admin.close()
  roleless.close()
  await control.stop()
  assert.deepEqual(control.errors, [])
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})

/** Sends `text` without a certificate; resolves with the first line that comes back. */
async function firstLine(text: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: control.port, ca: control.caPem, ALPNProtocols: ['http/1.1'] })
  sockets.push(socket)
  await once(socket, 'secureConnect')
  let answer = ''
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString('latin1')
  })
  socket.write(text)
  return waitFor('an answer', () => (answer.includes('\r\n') ? answer.slice(0, answer.indexOf('\r\n')) : undefined))
}

function fail(message: string): void {
  throw new Error(message)
}

/** Takes no more than it is told to, and remembers what came. */
class HeldStream implements Stream {
  queued = ANSWER_WATER_BYTES
  code = ''
  readonly lines: Json[] = []
  headers(list: HeaderList): void {
    this.code = list[1] ?? ''
  }
  body(chunk: Buffer): void {
    if (chunk.length > 0) this.lines.push(JSON.parse(chunk.toString()))
  }
  trailers(): void {
    // Not examined here.
  }
  credit(): void {
    // Not examined here.
  }
  reset(): void {
    // Not examined here.
  }
}

describe('bodies', () => {
  test('in a GET are neither waited for nor kept: any client may ask for health', async () => {
    const line = await firstLine('GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\nx')
    assert.equal(line, 'HTTP/1.1 200 OK')
  })

  test('from users without rights are refused before they are sent', async () => {
    const line = await firstLine(`POST ${UC} HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\nx`)
    assert.equal(line, 'HTTP/1.1 403 Forbidden')
  })

  test('with questions about the caller itself are small', async () => {
    const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    assert.equal((await roleless.post(REVIEWS, review)).code, 201)
    const { code, json } = await roleless.post(REVIEWS, { ...review, metadata: { name: 'x'.repeat(40_000) } })
    assert.equal(code, 413)
    assert.equal(json.reason, 'RequestEntityTooLarge')
  })

  test('that one user begins and does not end take nothing from another one, and have a bound together', async () => {
    const pki = join(control.dir, 'pki')
    const mallory = issueControlCertificate(pki, { user: 'mallory', groups: ['portcullis:admins'] })
    const session = h2Connect({ port: control.port, certificate: mallory })
    // So short that what is left when one is refused is less than the other one needs.
    const part = Buffer.alloc(100_000, ' ')
    const refusals: string[] = []
    for (let i = 0; i * part.length < 1.05 * MAX_ALL_BODY_BYTES; i++) {
      const stream = h2Open(session, [':method', 'POST', ':path', UC], { endStream: false })
      stream.write(part)
      stream.on('response', (head) => refusals.push(`${head[':status']}, ${head['retry-after']}: `))
      stream.on('data', (chunk: Buffer) => refusals.push(chunk.toString()))
    }
    const refused = await waitFor('a refusal', () => {
      const text = refusals.join('')
      return text.includes('retry in') && text
    })
    assert.match(
      refused,
      /^429, 1: .*user .*mallory.* of the control plane is sending \d+ of 16777216 bytes that bodies of requests to the API server/,
    )
    const large = { ...cluster('large'), metadata: { name: 'large', annotations: { text: 'x'.repeat(200_000) } } }
    assert.equal((await admin.post(UC, large)).code, 201)
    session.destroy()
    const again = h2Connect({ port: control.port, certificate: mallory })
    await waitFor('room for mallory', async () => {
      const answer = await h2Request(again, [':method', 'POST', ':path', UC], Buffer.alloc(MAX_BODY_BYTES - 1, ' '))
      return answer.status !== 429
    })
    again.destroy()
  })
})

test('namespaces are deleted one by one: no request empties the server at once', async () => {
  const { code, json } = await admin.delete('/api/v1/namespaces')
  assert.equal(code, 405)
  assert.equal(json.reason, 'MethodNotAllowed')
})

test('the warnings of an answer fit into a head that clients take', async () => {
  const unknown = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`unknown${i}${'x'.repeat(300)}`, 1]))
  const object = cluster('warned')
  const { code, headers } = await admin.post(`${UC}?fieldValidation=Warn`, {
    ...object,
    spec: { ...object.spec, ...unknown },
  })
  assert.equal(code, 201)
  const size = JSON.stringify(headers).length
  assert.ok(size > 4000 && size < 8000, `${size} characters of header fields`)
})

test('one user has so many watches, and others still have theirs', () => {
  let user = 'a'
  const handler = createControlHandler({
    registry: control.registry,
    reviews: [],
    shownTo: () => (_kind, object) => object,
    version: '0.0.0',
    checks: [],
    authenticate: () => ({ name: user, uid: '', groups: [], extra: {} }),
    authorize: () => true,
    log: { debug: fail, info: fail, warn: fail, error: fail },
    random: () => 0,
    uuid: randomUUID,
  })
  const peer = { certificate: undefined } as Peer
  const watch = (): { code: string; gone: () => void } => {
    const stream = new HeldStream()
    const events = handler(peer, stream, [':method', 'GET', ':path', `${UC}?watch=1`, ':authority', 'x'], true)
    return { code: stream.code, gone: () => events.onReset('cancel') }
  }
  try {
    const open = Array.from({ length: MAX_WATCHES_PER_USER }, watch)
    assert.ok(open.every(({ code }) => code === '200'))
    assert.equal(watch().code, '429')
    user = 'b'
    assert.equal(watch().code, '200')
    user = 'a'
    open[0]?.gone()
    assert.equal(watch().code, '200')
    assert.equal(watch().code, '429')
  } finally {
    handler.endWatches()
  }
})

test('the bookmark after the initial events does not cover later ones', async () => {
  await admin.post(UC, cluster('first'))
  const begun = control.store.revision
  // A client that takes nothing for now.
  const stream = new HeldStream()
  const query = new Query('watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true')
  const request = {
    kind: UPSTREAM_CLUSTERS,
    namespace: '',
    options: readWatchOptions(query, UPSTREAM_CLUSTERS),
    encoding: { as: 'object', format: 'json', pretty: false },
    includeObject: 'Metadata',
    show: (_kind: ResourceKind, object: JsonObject) => object,
  } as const
  const watch = new WatchStream(
    { store: control.store, now: Date.now, random: () => 0 },
    request,
    stream,
    () => undefined,
  )
  watch.start()
  await admin.post(UC, cluster('second'))
  stream.queued = 0
  watch.onDrained()
  watch.onReset()
  const { lines } = stream
  const at = lines.findIndex(({ type }) => type === 'BOOKMARK')
  const bookmark = lines[at]
  assert.equal(bookmark.object.metadata.annotations['k8s.io/initial-events-end'], 'true')
  const behind = lines.slice(at + 1)
  assert.deepEqual(
    behind.map(({ object }) => object.metadata.name),
    ['second'],
  )
  // A watch that resumes from the bookmark gets what came behind it.
  assert.equal(bookmark.object.metadata.resourceVersion, String(begun))
})
