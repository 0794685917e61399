// Reads the lines of an access log from a file, plain or compressed, or from standard input. Memory grows neither with the log nor with a line.

import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { errorMessage } from '../../api/validation/error-message.ts'
import { UserError } from '../../api/validation/field-errors.ts'

export interface LogLine {
  /** From 1. */
  readonly number: number
  /** undefined = longer than any line of the gateway. */
  readonly text: string | undefined
}

/** Bytes; our longest line has an escaped target of 64 KiB, and as many group names as a head may have. */
const MAX_LINE = 4 * 1024 * 1024
const NEWLINE = 0x0a
const GZIP_MAGIC = [0x1f, 0x8b]

/** Lines of a file; compression is detected by its first bytes. @throws {UserError} if it cannot be read to its end */
export async function* linesOfFile(path: string): AsyncGenerator<LogLine> {
  const compressed = await isCompressed(path)
  const file = createReadStream(path, { highWaterMark: 256 * 1024 })
  const source: Readable = compressed ? file.pipe(createGunzip()) : file
  // A file's error does not propagate through the pipe by itself.
  if (compressed) file.on('error', (error) => source.destroy(error))
  let number = 0
  try {
    for await (const text of linesOf(source)) yield { number: ++number, text }
  } catch (error) {
    if (error instanceof UserError) throw error
    throw new UserError(
      `${path} cannot be read beyond line ${number}: ${errorMessage(error)}`,
      'is it complete? The lines before it can be read with: zcat FILE | head -n LINES | portcullis replay -',
    )
  } finally {
    file.destroy()
  }
}

/** Lines of standard input. */
export async function* numbered(lines: AsyncIterable<string>): AsyncGenerator<LogLine> {
  let number = 0
  for await (const line of lines) yield { number: ++number, text: line.length > MAX_LINE ? undefined : line }
}

async function isCompressed(path: string): Promise<boolean> {
  let file: Awaited<ReturnType<typeof open>>
  try {
    file = await open(path)
  } catch (error) {
    throw new UserError(`${path} cannot be read: ${errorMessage(error)}`, 'name an access log, or - for standard input')
  }
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return bytesRead === 2 && GZIP_MAGIC.every((byte, i) => buffer[i] === byte)
  } catch (error) {
    throw new UserError(`${path} cannot be read: ${errorMessage(error)}`, 'name an access log, or - for standard input')
  } finally {
    await file.close()
  }
}

/** undefined = an overlong line, whose bytes were discarded as they arrived. */
async function* linesOf(source: AsyncIterable<Buffer>): AsyncGenerator<string | undefined> {
  let parts: Buffer[] = []
  let length = 0
  const take = (last: Buffer): string | undefined => {
    const tooLong = length + last.length > MAX_LINE
    const text = tooLong ? undefined : Buffer.concat([...parts, last]).toString('utf8')
    parts = []
    length = 0
    return text
  }
  for await (const chunk of source) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield take(chunk.subarray(start, end))
      start = end + 1
    }
    const rest = chunk.subarray(start)
    length += rest.length
    if (length > MAX_LINE) parts = []
    else if (rest.length > 0) parts.push(rest)
  }
  if (length > 0) yield take(Buffer.alloc(0))
}
