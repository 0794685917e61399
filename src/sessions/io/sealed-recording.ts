// Format of a recording on disk: chunks, each sealed by AES-256-GCM under a key of the file's own, which is derived from that of the key file as the
// last good state derives its own. A chunk's number and whether it is the last are its nonce: what is changed, reordered, cut or taken from another
// file does not open, and what was written before a gateway was killed does.
//
//   "PCSR" | u16 version | salt 32 | chunks x (u32 length | ciphertext | tag 16)

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { closeSync, openSync, readSync } from 'node:fs'
import { readExistingKey } from '../../apiserver/io/store/key.ts'
import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'

const MAGIC = Buffer.from('PCSR', 'latin1')
const VERSION = 1
const SALT_BYTES = 32
const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const LENGTH_BYTES = 4
export const RECORDING_HEAD_BYTES = MAGIC.length + 2 + SALT_BYTES
/** Text of a chunk. */
export const MAX_CHUNK_BYTES: number = 256 * 1024

/** Seals one file. */
export class RecordingSeal {
  readonly head: Buffer
  readonly #key: Buffer
  #chunks = 0

  /** @param key of the key file */
  constructor(key: Buffer) {
    const version = Buffer.alloc(2)
    version.writeUInt16BE(VERSION)
    this.head = Buffer.concat([MAGIC, version, randomBytes(SALT_BYTES)])
    this.#key = fileKey(key, this.head)
  }

  /** @param text at most MAX_CHUNK_BYTES @param isLast nothing may be sealed afterwards */
  seal(text: Buffer, isLast: boolean): Buffer {
    const cipher = createCipheriv(ALGORITHM, this.#key, nonceOf(this.#chunks++, isLast))
    cipher.setAAD(this.head)
    const length = Buffer.allocUnsafe(LENGTH_BYTES)
    length.writeUInt32BE(text.length)
    const sealed = cipher.update(text)
    cipher.final()
    return Buffer.concat([length, sealed, cipher.getAuthTag()])
  }
}

/** Why reading ended: at the last chunk; or there was none, since the gateway was killed or the file is cut; or what follows does not open. */
export type RecordingEnd = 'complete' | 'cut' | 'damaged'

/** Reads a file piece by piece. */
export class RecordingOpener {
  readonly #head: Buffer
  readonly #key: Buffer
  #chunks = 0
  #waiting: Buffer = Buffer.alloc(0)
  end: RecordingEnd = 'cut'

  /** @param head the first RECORDING_HEAD_BYTES of the file */
  constructor(head: Buffer, key: Buffer) {
    this.#head = head
    this.#key = fileKey(key, head)
  }

  static isRecording(head: Buffer): boolean {
    const isOurs = head.length === RECORDING_HEAD_BYTES && head.subarray(0, MAGIC.length).equals(MAGIC)
    return isOurs && head.readUInt16BE(MAGIC.length) === VERSION
  }

  /** The texts of the chunks that are whole by now. Nothing follows one that does not open. */
  *open(piece: Buffer): Generator<Buffer> {
    this.#waiting = this.#waiting.length === 0 ? piece : Buffer.concat([this.#waiting, piece])
    while (this.end === 'cut' && this.#waiting.length >= LENGTH_BYTES) {
      const length = this.#waiting.readUInt32BE(0)
      if (length > MAX_CHUNK_BYTES) {
        this.end = 'damaged'
        return
      }
      const whole = LENGTH_BYTES + length + TAG_BYTES
      if (this.#waiting.length < whole) return
      const sealed = this.#waiting.subarray(LENGTH_BYTES, whole)
      this.#waiting = this.#waiting.subarray(whole)
      const text = this.#opened(sealed, false)
      const last = text ?? this.#opened(sealed, true)
      this.#chunks++
      if (text === undefined) this.end = last === undefined ? 'damaged' : 'complete'
      if (last !== undefined) yield last
    }
    if (this.end === 'complete' && this.#waiting.length > 0) this.end = 'damaged'
  }

  #opened(sealed: Buffer, isLast: boolean): Buffer | undefined {
    const decipher = createDecipheriv(ALGORITHM, this.#key, nonceOf(this.#chunks, isLast), {
      authTagLength: TAG_BYTES,
    })
    decipher.setAAD(this.#head)
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES)), decipher.final()])
    } catch {
      // From OpenSSL: the tag does not match.
      return undefined
    }
  }
}

/** Different for every file, so that a number can be a nonce. */
function fileKey(key: Buffer, head: Buffer): Buffer {
  const salt = head.subarray(head.length - SALT_BYTES)
  return Buffer.from(hkdfSync('sha256', key, salt, 'portcullis session recording', 32))
}

function nonceOf(chunk: number, isLast: boolean): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeUIntBE(chunk, 0, 6)
  nonce[NONCE_BYTES - 1] = isLast ? 1 : 0
  return nonce
}

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
