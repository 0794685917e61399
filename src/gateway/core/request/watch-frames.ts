// Finds the ends of a watch's events in its byte stream, so that a watch that must stop can end cleanly between two of them. Formats: JSON
// has one document per line; protobuf has a 4-byte big-endian length before each event (apimachinery/pkg/util/framer).

export interface WatchFrames {
  readonly format: 'json' | 'protobuf' | 'opaque'
  /** Bytes left of the current frame (protobuf). */
  remaining: number
  /** Length prefix read so far, and number of its bytes. */
  prefix: number
  prefixBytes: number
  /** The bytes seen so far end exactly after an event. */
  atBoundary: boolean
}

const PREFIX_LENGTH = 4
const NEWLINE = 0x0a

/** @param contentType of the response; @param contentEncoding '' when not compressed */
export function createWatchFrames(contentType: string, contentEncoding: string): WatchFrames {
  const format = contentEncoding !== '' && contentEncoding !== 'identity' ? 'opaque' : formatOf(contentType)
  return { format, remaining: 0, prefix: 0, prefixBytes: 0, atBoundary: format !== 'opaque' }
}

function formatOf(contentType: string): WatchFrames['format'] {
  const type = contentType.split(';', 1)[0]?.trim().toLowerCase()
  if (type === 'application/json') return 'json'
  if (type === 'application/vnd.kubernetes.protobuf') return 'protobuf'
  return 'opaque'
}

/** Follows the stream; returns whether it is now between two events. */
export function followWatch(frames: WatchFrames, chunk: Uint8Array): boolean {
  if (chunk.length === 0) return frames.atBoundary
  if (frames.format === 'json') frames.atBoundary = chunk[chunk.length - 1] === NEWLINE
  else if (frames.format === 'protobuf') followProtobuf(frames, chunk)
  return frames.atBoundary
}

function followProtobuf(frames: WatchFrames, chunk: Uint8Array): void {
  let at = 0
  while (at < chunk.length) {
    if (frames.remaining > 0) {
      const taken = Math.min(frames.remaining, chunk.length - at)
      frames.remaining -= taken
      at += taken
      continue
    }
    frames.prefix = frames.prefix * 256 + (chunk[at] ?? 0)
    at++
    frames.prefixBytes++
    if (frames.prefixBytes === PREFIX_LENGTH) {
      frames.remaining = frames.prefix
      frames.prefix = 0
      frames.prefixBytes = 0
    }
  }
  frames.atBoundary = frames.remaining === 0 && frames.prefixBytes === 0
}
