// Reads the lines of a recording, as far as it opens.

import { closeSync, openSync, readSync } from 'node:fs'
import { readExistingKey } from '../../apiserver/io/store/key.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { RECORDING_HEAD_BYTES, type RecordingEnd, RecordingOpener } from './sealed-recording.ts'

const READ_BYTES = 64 * 1024

export interface OpenedRecording {
  /** Without line ends. */
  lines(): Generator<string>
  /** Once all lines were read. */
  readonly end: RecordingEnd
  close(): void
}

/** @throws {UserError} */
export function openRecording(file: string, keyFile: string): OpenedRecording {
  const key = readExistingKey(keyFile, 'the recordings of sessions')
  if (key === undefined) {
    throw new UserError(`there is no key at ${keyFile}`, 'give the --session-recording-key-file of the gateway')
  }
  let fd = -1
  try {
    fd = openSync(file, 'r')
    const head = Buffer.alloc(RECORDING_HEAD_BYTES)
    const length = readSync(fd, head)
    if (!RecordingOpener.isRecording(head.subarray(0, length))) {
      closeSync(fd)
      throw new UserError(`${file} is not a recording of a session`, 'name a file of --session-recording-dir')
    }
    const opener = new RecordingOpener(head, key)
    return {
      lines: () => linesOf(fd, opener),
      close: () => closeSync(fd),
      get end() {
        return opener.end
      },
    }
  } catch (error) {
    if (error instanceof UserError) throw error
    throw new UserError(
      `cannot read ${file}: ${errorMessage(error)}`,
      'give this user access to it, or name another file',
    )
  }
}

function* linesOf(fd: number, opener: RecordingOpener): Generator<string> {
  const piece = Buffer.alloc(READ_BYTES)
  const decoder = new TextDecoder()
  let rest: string[] = []
  for (let length = readSync(fd, piece); length > 0; length = readSync(fd, piece)) {
    for (const chunk of opener.open(Buffer.from(piece.subarray(0, length)))) {
      const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n')
      rest.push(first)
      for (const line of others) {
        yield rest.join('')
        rest = [line]
      }
    }
  }
}
