// Upstreams that speak HTTP/1.1 and answer before they have read a body, whatever they do with the connection then: clients see the answer.

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { createCA } from '../../src/pki/io/pki.ts'
import { type InProcessGateway, startInProcess } from '../harness/gateways/in-process.ts'
import { base64, clientPair, clusterObject } from '../harness/objects/objects.ts'
import { Uploads } from '../harness/uploads/uploads.ts'
import { type Http1Stub, startHttp1Stub } from '../harness/upstreams/stub-http1.ts'

const BYTES = 900 * 1024
const RUNS = 10
/** The difference is between the gateway and upstream: early-answers.test.ts has the other clients. */
const CLIENTS = ['Go net/http, HTTP/2', 'Go net/http, HTTP/1.1']
const BODY = '{"kind":"Status"}'
const HEAD = 'HTTP/1.1 403 Forbidden\r\ncontent-type: application/json\r\n'
const CLOSE = 'connection: close\r\n'
const SIZED = `content-length: ${BODY.length}\r\n\r\n${BODY}`
const CHUNKED = `transfer-encoding: chunked\r\n\r\n${BODY.length.toString(16)}\r\n${BODY}\r\n`

type End = (socket: Socket, response: ServerResponse) => void

/** What a server does behind the head of the request. One that closes on unread bytes resets the connection. */
const ENDS: Readonly<Record<string, End>> = {
  'keeps the connection': (_, response) => {
    response.writeHead(403, { 'content-type': 'application/json', 'content-length': BODY.length }).end(BODY)
  },
  'keeps the connection, with chunks': (_, response) => {
    response.writeHead(403, { 'content-type': 'application/json' }).write(BODY, () => response.end())
  },
  'never reads on': (socket) => {
    socket.write(HEAD + SIZED)
  },
  'ends its half': (socket) => {
    socket.end(HEAD + CLOSE + SIZED)
  },
  'ends its half, which ends the answer': (socket) => {
    socket.end(`${HEAD}\r\n${BODY}`)
  },
  'closes at once': (socket) => {
    socket.write(HEAD + CLOSE + SIZED, () => socket.destroy())
  },
  'closes at once without saying so': (socket) => {
    socket.write(HEAD + SIZED, () => socket.destroy())
  },
  'closes behind the last chunk': (socket) => {
    socket.write(HEAD + CLOSE + CHUNKED)
    socket.write('0\r\n\r\n', () => socket.destroy())
  },
}

const clientCA = createCA({ commonName: 'clients' })
const hosts = { plain: 'plain.example.com', secure: 'secure.example.com' }
let uploads: Uploads
let plain: Http1Stub
let secure: Http1Stub
let gateway: InProcessGateway

before(async () => {
  uploads = new Uploads(clientPair(clientCA, 'alice', ['dev']), BYTES)
  plain = await startHttp1Stub({ plain: true })
  secure = await startHttp1Stub()
  for (const stub of [plain, secure]) {
    stub.answer = ({ path, message, response }) => {
      ENDS[decodeURIComponent(path.split('?end=')[1] ?? '')]?.(message.socket, response)
    }
  }
  const over1 = (name: string, { url }: Http1Stub, caData: object) =>
    clusterObject([], {
      name,
      clientCA,
      spec: {
        servers: [{ endpoint: url }],
        clientConfig: { bearerToken: base64('gateway-token'), ...caData },
        // Its closing counts as a failure of the connection: only the answer is looked at here.
        healthCheck: { intervalSeconds: 3600 },
      },
    })
  gateway = await startInProcess([
    over1(hosts.plain, plain, {}),
    over1(hosts.secure, secure, { caData: base64(secure.caPem) }),
  ])
})
after(async () => {
  await gateway?.stop()
  await plain?.stop()
  await secure?.stop()
  uploads?.end()
})

for (const [kind, host] of Object.entries(hosts)) {
  for (const end of Object.keys(ENDS)) {
    describe(`an upstream (${kind}) that refuses and ${end}`, () => {
      for (const client of CLIENTS) {
        test(`is heard by ${client}`, async () => {
          const path = `/api/v1/namespaces/default/configmaps?end=${encodeURIComponent(end)}`
          let run = 0
          for await (const said of uploads.post(client, { port: gateway.port, host, path }, RUNS))
            assert.equal(`run ${++run}: ${said}`, `run ${run}: 403`)
          assert.equal(run, RUNS)
        })
      }
    })
  }
}
