// A receiver of OTLP over HTTP in JSON, as a collector is one: it keeps the spans, and answers as a test tells it.

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'

type Value = { readonly stringValue: string } | { readonly intValue: string } | { readonly boolValue: boolean }
export interface OtlpAttribute {
  readonly key: string
  readonly value: Value
}

export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly flags: number
  readonly name: string
  readonly kind: number
  /** uint64 as text, as proto3's JSON wants it. */
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly OtlpAttribute[]
  readonly events: readonly {
    readonly timeUnixNano: string
    readonly name: string
    readonly attributes: readonly OtlpAttribute[]
  }[]
  readonly status: { readonly code?: number; readonly message?: string }
}

export interface ReceivedSpan extends OtlpSpan {
  /** Its attributes, as plain values. */
  readonly tags: Readonly<Record<string, string | boolean>>
}

export interface OtlpReceiver {
  readonly url: string
  /** The spans of all requests that were answered with 200. */
  readonly spans: ReceivedSpan[]
  readonly resources: Readonly<Record<string, string | boolean>>[]
  /** The header fields of each request. */
  readonly heads: IncomingHttpHeaders[]
  /** The errors of TLS handshakes that clients broke off. */
  readonly handshakeErrors: Error[]
  /** Answers the next requests; it returns whether the spans were taken. Default: 200. */
  answer: (response: ServerResponse) => boolean
  stop(): Promise<void>
}

/** @param tls with this certificate */
export async function startOtlpReceiver(tls?: { readonly cert: string; readonly key: string }): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const resources: OtlpReceiver['resources'] = []
  const heads: IncomingHttpHeaders[] = []
  const receiver: Pick<OtlpReceiver, 'answer'> = {
    answer: (response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"partialSuccess":{}}')
      return true
    },
  }
  const server = tls === undefined ? createServer() : createTlsServer(tls)
  const handshakeErrors: Error[] = []
  server.on('tlsClientError', (error) => void handshakeErrors.push(error))
  server.on('request', (request, response) => {
    const chunks: Buffer[] = []
    heads.push({ ...request.headers, ':path': request.url })
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (!receiver.answer(response)) return
      const { resourceSpans } = JSON.parse(gunzipSync(Buffer.concat(chunks)).toString('utf8'))
      for (const { resource, scopeSpans } of resourceSpans) {
        resources.push(tagsOf(resource.attributes))
        for (const { spans: found } of scopeSpans) {
          for (const span of found) spans.push({ ...span, tags: tagsOf(span.attributes) })
        }
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return Object.assign(receiver, {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    handshakeErrors,
    spans,
    resources,
    heads,
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  })
}

export function tagsOf(attributes: readonly OtlpAttribute[]): Record<string, string | boolean> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const [plain] = Object.values(value)
      return [key, plain]
    }),
  )
}
