// Frames of SPDY/3.1, as a test wants them.

/** A 32-bit number. */
export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A header block, not compressed. */
export function fieldBlock(pairs: readonly (readonly [string, string])[]): Buffer {
  const texts = pairs.flat().flatMap((text) => [u32(Buffer.byteLength(text)), Buffer.from(text)])
  return Buffer.concat([u32(pairs.length), ...texts])
}

export function controlFrame(type: number, body: Buffer, flags = 0): Buffer {
  return Buffer.concat([Buffer.from([0x80, 3, 0, type, flags]), u32(body.length).subarray(1), body])
}

/** @param block as it is sent */
export function synStream(id: number, block: Buffer, flags = 0): Buffer {
  return controlFrame(1, Buffer.concat([u32(id), u32(0), Buffer.alloc(2), block]), flags)
}

export function rstStream(id: number): Buffer {
  return controlFrame(3, Buffer.concat([u32(id), u32(5)]))
}

export function dataFrame(id: number, text: string | Buffer, flags = 0): Buffer {
  const bytes = Buffer.from(text)
  return Buffer.concat([u32(id), Buffer.from([flags]), u32(bytes.length).subarray(1), bytes])
}
