// The connections of a port-forward. Over SPDY each has two streams, which the client opens and relates by a request ID; in channels over WebSocket there
// is one for each port of the query (k8s.io/cri-streaming/pkg/streaming/portforward; client-go/tools/portforward).

import { MAX_SESSION_PORTS } from '../../../gateway/core/request/session-request.ts'
import { type ForwardConnection, type ForwardSink, MalformedSession } from './channels.ts'
import type { HeaderFields, SpdyStream, SpdyUse } from './spdy.ts'
import type { MessageChannels } from './websocket.ts'

/** Streams of a port-forward that are open at a time: two for each connection. Each takes half a kilobyte. */
export const MAX_FORWARD_STREAMS = 512
/** Characters of a request ID, which clients count. */
export const MAX_REQUEST_ID = 64
/** Ports of a session in channels: two each, whose numbers are a byte. */
const MAX_CHANNEL_PORTS = 127
const MAX_PORT = 65_535
/** With which each channel of a server begins: its port. */
const PORT_BYTES = 2

export function forwardStreams(sink: ForwardSink): SpdyUse {
  const pairs = new StreamPairs(sink)
  return { maxStreams: MAX_FORWARD_STREAMS, open: (id, fields) => pairs.open(id, fields) }
}

/** Connections that are open, by request ID. A kubelet forgets the ID some time after both streams are there; until then, a third one would not be served. */
class StreamPairs {
  readonly #sink: ForwardSink
  readonly #open = new Map<string, StreamPair>()
  #begun = 0

  constructor(sink: ForwardSink) {
    this.#sink = sink
  }

  open(id: number, fields: HeaderFields): SpdyStream {
    const port = portOf(fields.get('port') ?? '')
    const type = fields.get('streamtype')
    // A kubelet resets these. Not passed over: what it serves must never be missing because it reads them in another way.
    if (port === 0 || (type !== 'data' && type !== 'error')) throw new MalformedSession('a stream of no port or kind')
    // Old clients send none, and open the stream for data right after that for errors.
    const request = fields.get('requestid') || String(type === 'data' ? id - 2 : id)
    if (request.length > MAX_REQUEST_ID) throw new MalformedSession('a long request ID')
    const pair = this.#open.get(request) ?? new StreamPair(this.#sink, () => this.#open.delete(request))
    this.#open.set(request, pair)
    const stream = type === 'data' ? pair.data(port) : pair.errors()
    if (pair.isComplete) pair.begin(++this.#begun)
    return stream
  }
}

class StreamPair implements ForwardConnection {
  readonly #sink: ForwardSink
  readonly #gone: () => void
  #hasData = false
  #hasErrors = false
  /** 0 = it has not begun: the pod gets nothing. */
  number = 0
  /** That of its stream for data, as a kubelet takes it. */
  port = 0

  constructor(sink: ForwardSink, gone: () => void) {
    this.#sink = sink
    this.#gone = gone
  }

  get isComplete(): boolean {
    return this.#hasData && this.#hasErrors
  }

  begin(number: number): void {
    this.number = number
    this.#sink.begin(this)
  }

  data(port: number): SpdyStream {
    if (this.#hasData) throw new MalformedSession('a connection with two streams of a kind')
    this.#hasData = true
    this.port = port
    return {
      fromClient: (bytes) => this.#sink.fromClient(this.#begun(), bytes),
      toClient: (bytes) => this.#sink.toClient(this.#begun(), bytes),
      onClosed: () => {
        this.#gone()
        if (this.number > 0) this.#sink.end(this)
      },
    }
  }

  errors(): SpdyStream {
    if (this.#hasErrors) throw new MalformedSession('a connection with two streams of a kind')
    this.#hasErrors = true
    return {
      fromClient: undefined,
      toClient: (bytes) => {
        if (this.number > 0) this.#sink.error(this, bytes)
      },
      onClosed: () => {
        if (!this.#hasData) this.#gone()
      },
    }
  }

  #begun(): ForwardConnection {
    if (this.number === 0) throw new MalformedSession('data of a connection without a stream for errors')
    return this
  }
}

/**
 * @param ports of the query: each text has one, or several with commas
 * @returns undefined if one of them is not a port, or if there may be more than are kept: the pod would get what comes on their channels
 */
export function forwardChannels(ports: readonly string[], sink: ForwardSink): MessageChannels | undefined {
  if (ports.length >= MAX_SESSION_PORTS || ports.some((text) => text.length >= MAX_SESSION_PORTS)) return undefined
  const numbers = ports.flatMap((text) => text.split(',')).map(portOf)
  if (numbers.length === 0 || numbers.length > MAX_CHANNEL_PORTS || numbers.includes(0)) return undefined
  const connections = numbers.map((port, at) => {
    const connection = { number: at + 1, port }
    let hasBegun = false
    const begin = (): ForwardConnection => {
      if (!hasBegun) sink.begin(connection)
      hasBegun = true
      return connection
    }
    return {
      fromClient: (bytes: Uint8Array) => sink.fromClient(begin(), bytes),
      toClient: behindPort(port, (bytes) => sink.toClient(begin(), bytes)),
      errors: behindPort(port, (bytes) => sink.error(begin(), bytes)),
    }
  })
  return {
    fromClient: connections.flatMap(({ fromClient }) => [fromClient, undefined]),
    toClient: connections.flatMap(({ toClient, errors }) => [toClient, errors]),
  }
}

function behindPort(port: number, take: (bytes: Uint8Array) => void): (bytes: Uint8Array) => void {
  let seen = 0
  return (bytes) => {
    let at = 0
    for (; seen < PORT_BYTES && at < bytes.length; at++) {
      // Little-endian.
      if (bytes[at] !== ((port >> (8 * seen++)) & 0xff)) throw new MalformedSession('a channel of another port')
    }
    if (at < bytes.length) take(bytes.subarray(at))
  }
}

/** As a kubelet reads it. 0 = it is not a port. */
function portOf(text: string): number {
  const port = /^\d{1,20}$/.test(text) ? Number(text) : 0
  return port <= MAX_PORT ? port : 0
}
