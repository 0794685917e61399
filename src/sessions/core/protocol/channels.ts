// The streams of an exec or attach, whatever protocol carries them (k8s.io/streaming: wsstream, spdy; apimachinery/pkg/util/remotecommand).

export type SessionChannel = 'stdin' | 'stdout' | 'stderr' | 'error' | 'resize'

/** Receives what a session consists of. The bytes are valid until it returns. */
export type ChannelSink = (channel: SessionChannel, bytes: Uint8Array) => void

/** Reads both directions, from copies or views of what passes; keeps no more than heads of frames. */
export interface SessionReader {
  /** @throws {MalformedSession} */
  fromClient(chunk: Uint8Array): void
  /** @throws {MalformedSession} */
  toClient(chunk: Uint8Array): void
}

/** It is not the protocol, or more of it than is kept: what follows cannot be attributed to a stream. */
export class MalformedSession extends Error {}
