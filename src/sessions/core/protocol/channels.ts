// The streams of an exec or attach, and the connections of a port-forward, whatever protocol carries them (k8s.io/streaming: wsstream, spdy;
// apimachinery/pkg/util/remotecommand; client-go/tools/portforward).

export type SessionChannel = 'stdin' | 'stdout' | 'stderr' | 'error' | 'resize'

/** Receives what an exec or attach consists of. The bytes are valid until it returns. */
export type ChannelSink = (channel: SessionChannel, bytes: Uint8Array) => void

export interface ForwardConnection {
  /** From 1, in the order in which they begin. */
  readonly number: number
  readonly port: number
}

/** Receives what a port-forward consists of. The bytes are valid until it returns. */
export interface ForwardSink {
  begin(connection: ForwardConnection): void
  fromClient(connection: ForwardConnection, bytes: Uint8Array): void
  toClient(connection: ForwardConnection, bytes: Uint8Array): void
  /** What the kubelet says of a connection that has failed. */
  error(connection: ForwardConnection, bytes: Uint8Array): void
  end(connection: ForwardConnection): void
}

/** Receives one stream in one direction; undefined = it is not looked at. */
export type TakeBytes = ((bytes: Uint8Array) => void) | undefined

/** Reads both directions, from copies or views of what passes; keeps no more than heads of frames. */
export interface SessionReader {
  /** @throws {MalformedSession} */
  fromClient(chunk: Uint8Array): void
  /** @throws {MalformedSession} */
  toClient(chunk: Uint8Array): void
}

/** It is not the protocol, or more of it than is kept: what follows cannot be attributed to a stream. */
export class MalformedSession extends Error {}
