// Frames of a WebSocket as its server writes them (RFC 6455 section 5.2): whole messages, not masked.

export const FIN = 0x80
export const MASKED = 0x80
export const LENGTH_16 = 126
export const LENGTH_64 = 127
export const MAX_CONTROL_BYTES = 125

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** Why a connection is closed (section 7.4.1). */
export const CLOSURES = { normal: 1000, protocolError: 1002 } as const

const MOST_16 = 0xffff

/** What stands in front of a message of so many bytes of text. */
export function textHead(bytes: number): Buffer {
  if (bytes < LENGTH_16) return Buffer.from([FIN | OPCODES.text, bytes])
  if (bytes <= MOST_16) return Buffer.from([FIN | OPCODES.text, LENGTH_16, bytes >>> 8, bytes & 0xff])
  const head = Buffer.alloc(10)
  head[0] = FIN | OPCODES.text
  head[1] = LENGTH_64
  head.writeBigUInt64BE(BigInt(bytes), 2)
  return head
}

/** @param payload of a ping */
export function pongFrame(payload: Uint8Array): Buffer {
  return Buffer.from([FIN | OPCODES.pong, payload.length, ...payload])
}

export function closeFrame(status: number): Buffer {
  return Buffer.from([FIN | OPCODES.close, 2, status >>> 8, status & 0xff])
}
