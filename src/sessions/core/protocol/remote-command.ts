// The channels of exec and attach: which stream of SPDY, and which number in a message over WebSocket, is which, and who sends on it.

import type { ChannelSink, SessionChannel, TakeBytes } from './channels.ts'
import type { SpdyUse } from './spdy.ts'
import type { MessageChannels } from './websocket.ts'

/** Streams of an exec or attach, of which remotecommand needs five. */
export const MAX_SESSION_STREAMS = 16

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
