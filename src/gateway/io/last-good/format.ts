// File format of a last good state: a cleartext header, individually sealed records (so that a change only reseals what it touches), and a seal over
// all of them. AES-256-GCM with a key derived from the store's. Anything modified, truncated, added, reordered or taken from another file does not
// open.
//
//   "PCLG" | u16 version | u32 length of header | header (JSON) | count x (u32 length | nonce 12 | tag 16 | ciphertext) | nonce 12 | tag 16

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { isRecord } from '../../../kit/api/json/object-shape.ts'

interface LastGoodHeader {
  /** Identifies the server and which of its states this is: a file from another one is rejected. */
  readonly source: string
  /** When the state was known to be current, milliseconds since the epoch. */
  readonly timeMs: number
}

export interface LastGood extends LastGoodHeader {
  /** The values passed to sealRecord(), in file order. */
  readonly records: readonly unknown[]
}

/** @param refused why the file is unusable, for the log */
type Opened = { readonly state: LastGood } | { readonly refused: string }

export const FORMAT_VERSION = 1
const MAGIC = Buffer.from('PCLG', 'latin1')
const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const FIXED_BYTES = MAGIC.length + 2 + 4
const RECORD_HEAD = 4 + NONCE_BYTES + TAG_BYTES
const SEAL_BYTES = NONCE_BYTES + TAG_BYTES
const MAX_HEADER = 64 * 1024
const DAMAGED = 'it is damaged, or was written with another key'

/** The source of a state that an API server holds. Ignores a password in its URL. */
export function objectsOf(server: string, context: string): string {
  const { protocol, host, pathname } = new URL(server)
  return `${protocol}//${host}${pathname}${context === '' ? '' : ` (context ${context})`}`
}

/** The key of these files: data sealed for the store cannot be used here, nor the other way round. */
export function lastGoodKey(storeKey: Buffer): Buffer {
  return Buffer.from(hkdfSync('sha256', storeKey, Buffer.alloc(0), 'portcullis last-good', 32))
}

/** Seals a JSON value as a record of this source's file. */
export function sealRecord(value: unknown, key: Buffer, source: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce)
  cipher.setAAD(recordContext(source))
  const body = cipher.update(JSON.stringify(value), 'utf8')
  cipher.final()
  const head = Buffer.allocUnsafe(RECORD_HEAD)
  head.writeUInt32BE(body.length, 0)
  nonce.copy(head, 4)
  cipher.getAuthTag().copy(head, 4 + NONCE_BYTES)
  return Buffer.concat([head, body])
}

/** The parts before and after the records. */
export function sealFile(
  { source, timeMs }: LastGoodHeader,
  records: readonly Buffer[],
  key: Buffer,
): { readonly head: Buffer; readonly seal: Buffer } {
  const header = Buffer.from(JSON.stringify({ source, timeMs, records: records.length }))
  const fixed = Buffer.alloc(FIXED_BYTES)
  MAGIC.copy(fixed)
  fixed.writeUInt16BE(FORMAT_VERSION, MAGIC.length)
  fixed.writeUInt32BE(header.length, MAGIC.length + 2)
  const head = Buffer.concat([fixed, header])
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(ALGORITHM, key, nonce)
  cipher.setAAD(fileContext(head, records))
  cipher.final()
  return { head, seal: Buffer.concat([nonce, cipher.getAuthTag()]) }
}

/** Never throws. */
export function openFile(bytes: Buffer, key: Buffer, source: string): Opened {
  try {
    return readFile(bytes, key, source)
  } catch {
    // From OpenSSL: the tag does not match.
    return { refused: DAMAGED }
  }
}

function readFile(bytes: Buffer, key: Buffer, source: string): Opened {
  if (bytes.length < FIXED_BYTES || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    return { refused: 'it is not such a file, or only its beginning' }
  }
  const version = bytes.readUInt16BE(MAGIC.length)
  if (version !== FORMAT_VERSION) {
    return { refused: `its format is version ${version}, and this program reads version ${FORMAT_VERSION}` }
  }
  const headerEnd = FIXED_BYTES + bytes.readUInt32BE(MAGIC.length + 2)
  if (headerEnd > FIXED_BYTES + MAX_HEADER || headerEnd > bytes.length) return { refused: 'it is only half there' }
  const header = readHeader(bytes.subarray(FIXED_BYTES, headerEnd))
  if (header === undefined) return { refused: DAMAGED }
  const records = split(bytes, headerEnd, header.records)
  if (records === undefined) return { refused: 'it is only half there' }
  const seal = bytes.subarray(bytes.length - SEAL_BYTES)
  open(seal, Buffer.alloc(0), key, fileContext(bytes.subarray(0, headerEnd), records))
  // Only now is the header authenticated.
  if (header.source !== source) return { refused: `it belongs to another source: ${header.source}` }
  const context = recordContext(source)
  const values = records.map((record): unknown => {
    return JSON.parse(
      open(record.subarray(4, RECORD_HEAD), record.subarray(RECORD_HEAD), key, context).toString('utf8'),
    )
  })
  return { state: { source, timeMs: header.timeMs, records: values } }
}

/** undefined = the lengths do not add up to the file. */
function split(bytes: Buffer, start: number, count: number): readonly Buffer[] | undefined {
  const end = bytes.length - SEAL_BYTES
  const records: Buffer[] = []
  let at = start
  for (let i = 0; i < count; i++) {
    if (at + RECORD_HEAD > end) return undefined
    const next = at + RECORD_HEAD + bytes.readUInt32BE(at)
    if (next > end) return undefined
    records.push(bytes.subarray(at, next))
    at = next
  }
  return at === end ? records : undefined
}

function readHeader(bytes: Buffer): (LastGoodHeader & { readonly records: number }) | undefined {
  const header: unknown = JSON.parse(bytes.toString('utf8'))
  if (!isRecord(header)) return undefined
  const { source, timeMs, records } = header
  const isHeader = typeof source === 'string' && typeof timeMs === 'number' && Number.isSafeInteger(records)
  return isHeader ? { source, timeMs, records: Number(records) } : undefined
}

/** @param sealed nonce and tag @throws if they do not match */
function open(sealed: Buffer, body: Buffer, key: Buffer, context: Buffer): Buffer {
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(context)
  decipher.setAuthTag(sealed.subarray(NONCE_BYTES))
  return Buffer.concat([decipher.update(body), decipher.final()])
}

function recordContext(source: string): Buffer {
  return Buffer.from(`portcullis last-good record ${FORMAT_VERSION}\n${source}`)
}

/** The tags represent the contents of the records. */
function fileContext(head: Buffer, records: readonly Buffer[]): Buffer {
  const hash = createHash('sha256').update('portcullis last-good file\n').update(head)
  for (const record of records) hash.update(record.subarray(0, RECORD_HEAD))
  return hash.digest()
}
