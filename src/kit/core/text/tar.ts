// Creates a tar archive of a few files (POSIX ustar).

export interface TarFile {
  /** At most 100 characters of ASCII. */
  readonly name: string
  readonly text: string
}

interface TarEntry extends Omit<TarFile, 'text'> {
  readonly text: string | Uint8Array
  /** Permissions. Default 0600. */
  readonly mode?: number
}

const BLOCK = 512

/** @param seconds modification time of the files, since the epoch */
export function tarOf(files: readonly TarEntry[], seconds: number): Buffer {
  const blocks = files.flatMap(({ name, text, mode = 0o600 }) => {
    const body = typeof text === 'string' ? Buffer.from(text) : text
    return [header(name, body.length, seconds, mode), body, Buffer.alloc((BLOCK - (body.length % BLOCK)) % BLOCK)]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function header(name: string, size: number, seconds: number, mode: number): Buffer {
  const block = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number): string => Math.floor(value).toString(8).padStart(digits, '0')
  block.write(name.slice(0, 100), 0, 'latin1')
  block.write(`${octal(mode, 7)}\0`, 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  block.write(`${octal(size, 11)}\0`, 124)
  block.write(`${octal(seconds, 11)}\0`, 136)
  // The checksum is computed with spaces in its own field.
  block.write('        ', 148)
  block.write('0', 156)
  block.write('ustar\x0000', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  block.write(`${octal(sum, 6)}\0 `, 148)
  return block
}
