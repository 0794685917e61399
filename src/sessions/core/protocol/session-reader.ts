// Which protocol a session has, as upstream's 101 says: a client cannot choose to be read in another way than it is served.

import { headerValue } from '../../../gateway/core/request/hop-headers.ts'
import type { HeaderList } from '../../../kit/api/stream.ts'
import type { ChannelSink, ForwardSink, SessionReader } from './channels.ts'
import { forwardChannels, forwardStreams } from './port-forward.ts'
import { commandChannels, commandStreams } from './remote-command.ts'
import { spdyReader } from './spdy.ts'
import type { InflateHeaders } from './spdy-fields.ts'
import { channelsReader, TUNNELLED_PORT_FORWARD, tunnelReader } from './websocket.ts'

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
