// An S3 store in this process, which keeps what is put, and answers as a test tells it. It verifies checksums, but no signatures.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type StoreAnswer = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void

interface StoredObject {
  readonly body: Buffer
  readonly sha256: string
}

export interface S3Stub {
  readonly url: string
  /** By path, with the bucket. */
  readonly objects: Map<string, StoredObject>
  /** `METHOD PATH` of each. */
  readonly requests: string[]
  /** Default: `store`. */
  answer: StoreAnswer
  /** Answers as a store does. */
  readonly store: StoreAnswer
  /** Ends all connections. */
  cut(): void
  stop(): Promise<void>
}

export async function startS3Stub(): Promise<S3Stub> {
  const objects = new Map<string, StoredObject>()
  const requests: string[] = []
  const store: StoreAnswer = ({ method, url = '', headers }, response, body) => {
    if (method === 'PUT') {
      assert.equal(headers['x-amz-content-sha256'], createHash('sha256').update(body).digest('hex'))
      assert.equal(headers['content-md5'], createHash('md5').update(body).digest('base64'))
      objects.set(url, { body, sha256: String(headers['x-amz-meta-sha256']) })
    }
    const object = method === 'HEAD' ? objects.get(url) : undefined
    response.writeHead(method === 'HEAD' && object === undefined ? 404 : 200, {
      'content-length': object?.body.length ?? 0,
      'x-amz-meta-sha256': object?.sha256 ?? '',
    })
    response.end()
  }
  const stub: Pick<S3Stub, 'answer'> = { answer: store }
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    const chunks: Buffer[] = []
    request.on('error', () => undefined)
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => stub.answer(request, response, Buffer.concat(chunks)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(stub, {
    url: `http://127.0.0.1:${port}`,
    objects,
    requests,
    store,
    cut: () => server.closeAllConnections(),
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  })
}
