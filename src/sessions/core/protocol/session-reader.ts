// Which protocol a session has, as upstream's 101 says: a client cannot choose to be read in another way than it is served. With it, the channels of exec
// and attach: which stream of SPDY, and which number in a message over WebSocket, is which, and who sends on it.

import { headerValue } from '../../../gateway/core/request/hop-headers.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import type { ChannelSink, ForwardSink, SessionChannel, SessionReader, TakeBytes } from './channels.ts'
import { forwardChannels, forwardStreams } from './port-forward.ts'
import { type InflateHeaders, type SpdyUse, spdyReader } from './spdy.ts'
import { channelsReader, type MessageChannels, TUNNELLED_PORT_FORWARD, tunnelReader } from './websocket.ts'

/** Receives an exec or attach, or a port-forward. */
export type SessionSink = { readonly ofCommand: ChannelSink } | { readonly ofForward: ForwardSink }

/**
 * @param head of upstream's 101, names in lower case
 * @param ports of the query, for a port-forward in channels
 * @returns undefined for a protocol that is not read
 */
export function readerFor(
  head: HeaderList,
  sink: SessionSink,
  ports: readonly string[],
  inflater: () => InflateHeaders,
): SessionReader | undefined {
  const streams = (): SessionReader =>
    spdyReader('ofForward' in sink ? forwardStreams(sink.ofForward) : commandStreams(sink.ofCommand), inflater())
  switch ((headerValue(head, 'upgrade') ?? '').toLowerCase()) {
    case 'websocket': {
      if (headerValue(head, 'sec-websocket-extensions') !== undefined) return undefined
      const subprotocol = headerValue(head, 'sec-websocket-protocol') ?? ''
      if (subprotocol === TUNNELLED_PORT_FORWARD) return 'ofForward' in sink ? tunnelReader(streams()) : undefined
      const channels = 'ofForward' in sink ? forwardChannels(ports, sink.ofForward) : commandChannels(sink.ofCommand)
      return channels === undefined ? undefined : channelsReader(subprotocol, channels)
    }
    case 'spdy/3.1':
      return streams()
    default:
      return undefined
  }
}

/** Streams of an exec or attach, of which remotecommand needs five. */
const MAX_SESSION_STREAMS = 16

/** By number; what comes on others is not part of the session. */
const CHANNELS: readonly SessionChannel[] = ['stdin', 'stdout', 'stderr', 'error', 'resize']
const OF_CLIENT: ReadonlySet<SessionChannel> = new Set<SessionChannel>(['stdin', 'resize'])

export function commandStreams(sink: ChannelSink): SpdyUse {
  return {
    maxStreams: MAX_SESSION_STREAMS,
    open(_, fields) {
      const channel = CHANNELS.find((one) => one === fields.get('streamtype'))
      if (channel === undefined) return undefined
      const take = takes(sink, channel)
      const isOfClient = OF_CLIENT.has(channel)
      return {
        fromClient: isOfClient ? take : undefined,
        toClient: isOfClient ? undefined : take,
        onClosed: () => undefined,
      }
    },
  }
}

export function commandChannels(sink: ChannelSink): MessageChannels {
  const of = (isOfClient: boolean): TakeBytes[] =>
    CHANNELS.map((channel) => (OF_CLIENT.has(channel) === isOfClient ? takes(sink, channel) : undefined))
  return { fromClient: of(true), toClient: of(false) }
}

function takes(sink: ChannelSink, channel: SessionChannel): TakeBytes {
  return (bytes) => sink(channel, bytes)
}
