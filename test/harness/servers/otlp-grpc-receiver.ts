// The smallest receiver of OTLP over gRPC, without TLS, as kube-apiserver sends its spans: TraceService/Export of opentelemetry-proto, and gRPC's
// framing over HTTP/2 (github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).

import { once } from 'node:events'
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { ProtobufReader } from '../../../src/kit/core/text/protobuf-reader.ts'

export interface GrpcSpan {
  readonly traceId: string
  readonly spanId: string
  /** '' = it is the root of its trace. */
  readonly parentSpanId: string
  readonly name: string
  /** Those that are texts. */
  readonly tags: Readonly<Record<string, string>>
}

export interface OtlpGrpcReceiver {
  /** 127.0.0.1:PORT */
  readonly endpoint: string
  readonly spans: GrpcSpan[]
  stop(): Promise<void>
}

const EXPORT = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'
const UNIMPLEMENTED = '12'
/** Whether it is compressed, and its length. */
const PREFIX_BYTES = 5

export async function startOtlpGrpcReceiver(): Promise<OtlpGrpcReceiver> {
  const spans: GrpcSpan[] = []
  const sessions = new Set<ServerHttp2Session>()
  const server = createServer()
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  server.on('stream', (stream, headers) => {
    if (headers[':path'] !== EXPORT) {
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': UNIMPLEMENTED })
      stream.end()
      return
    }
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
    stream.on('end', () => {
      spans.push(...exportedSpans(messageOf(Buffer.concat(chunks))))
      answerEmpty(stream)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    endpoint: `127.0.0.1:${port}`,
    spans,
    async stop() {
      server.close()
      for (const session of sessions) session.destroy()
      await once(server, 'close')
    },
  }
}

/** The one message of a request that is not a stream. */
function messageOf(body: Buffer): Buffer {
  if (body[0] !== 0) throw new Error('a compressed message, although no compression was agreed on')
  const end = PREFIX_BYTES + body.readUInt32BE(1)
  if (end !== body.length) throw new Error(`a message of ${end} bytes in a body of ${body.length}`)
  return body.subarray(PREFIX_BYTES)
}

/** An ExportTraceServiceResponse without fields: everything was taken. */
function answerEmpty(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.end(Buffer.alloc(PREFIX_BYTES))
}

/** ExportTraceServiceRequest: resource_spans = 1; in each scope_spans = 2; in each spans = 2. */
function exportedSpans(message: Buffer): GrpcSpan[] {
  return embedded(message, 1)
    .flatMap((resourceSpans) => embedded(resourceSpans, 2))
    .flatMap((scopeSpans) => embedded(scopeSpans, 2))
    .map(spanOf)
}

function spanOf(message: Buffer): GrpcSpan {
  const hex = (field: number): string => embedded(message, field)[0]?.toString('hex') ?? ''
  // KeyValue: key = 1, value = 2; in that string_value = 1.
  const tags = embedded(message, 9).map((attribute): [string, string] => {
    const [value] = embedded(embedded(attribute, 2)[0] ?? Buffer.alloc(0), 1)
    return [text(embedded(attribute, 1)[0]), text(value)]
  })
  return {
    traceId: hex(1),
    spanId: hex(2),
    parentSpanId: hex(4),
    name: text(embedded(message, 5)[0]),
    tags: Object.fromEntries(tags.filter(([, value]) => value !== '')),
  }
}

/** The values of one field that are bytes, texts or messages. */
function embedded(message: Buffer, field: number): Buffer[] {
  const reader = new ProtobufReader(message)
  const values: Buffer[] = []
  while (reader.next()) {
    if (reader.number === field) values.push(reader.bytes())
  }
  return values
}

function text(bytes: Buffer | undefined): string {
  return bytes?.toString('utf8') ?? ''
}
