// An ad hoc signature for a program of macOS, as Go's and Apple's linkers write it: hashes of its pages and no identity. Apple silicon runs no program
// without one. `codesign` exists on Macs only.
// Formats: mach-o/loader.h and cs_blobs.h of Apple's xnu; cmd/internal/codesign of Go.

import { createHash } from 'node:crypto'

/** struct mach_header_64. Its fields and those of load commands are little-endian, those of the signature big-endian. */
const HEADER = { commands: 16, commandBytes: 20, size: 32 } as const
const LC_SEGMENT_64 = 0x19
const LC_CODE_SIGNATURE = 0x1d
const SIGNATURE_COMMAND_BYTES = 16
/** struct segment_command_64 */
const SEGMENT = { name: 8, vmSize: 32, fileOffset: 40, fileSize: 48, sections: 64, size: 72 } as const
/** struct section_64 */
const SECTION = { offset: 48, size: 80 } as const
/** Pages of memory: 16 KiB on Apple silicon, four pages of an Intel Mac. */
const MEMORY_PAGE = 16_384

/** CS_SuperBlob with one CS_BlobIndex. */
const SUPER_BLOB_BYTES = 20
const MAGIC_SIGNATURE = 0xfade0cc0
const MAGIC_CODE_DIRECTORY = 0xfade0c02
/** With the fields about the segment of code. */
const DIRECTORY_VERSION = 0x20400
const DIRECTORY_BYTES = 88
/** CS_ADHOC and CS_LINKER_SIGNED: without an identity, and tools may sign it again without being told to replace this one. */
const FLAGS = 0x2_0002
const HASH_SHA256 = 2
const HASH_BYTES = 32
const PAGE_BITS = 12
const PAGE = 1 << PAGE_BITS
const MAIN_BINARY = 1n

interface Segment {
  /** Where its load command begins. */
  readonly at: number
  readonly fileOffset: number
  readonly fileSize: number
}

/**
 * The program with a signature.
 * @param unsigned 64 bits, for one processor
 * @param identifier what `codesign --display` calls it
 * @throws {Error} if it is signed, or has no place for one more load command
 */
export function signAdHoc(unsigned: Buffer, identifier: string): Buffer {
  const { end, text, linkEdit } = readCommands(unsigned)
  const codeBytes = roundUp(unsigned.length, 16)
  const id = Buffer.from(`${identifier}\0`)
  const directoryBytes = DIRECTORY_BYTES + id.length + HASH_BYTES * Math.ceil(codeBytes / PAGE)
  const signatureBytes = SUPER_BLOB_BYTES + directoryBytes
  const signed = Buffer.alloc(codeBytes + signatureBytes)
  unsigned.copy(signed)

  signed.writeUInt32LE(signed.readUInt32LE(HEADER.commands) + 1, HEADER.commands)
  signed.writeUInt32LE(signed.readUInt32LE(HEADER.commandBytes) + SIGNATURE_COMMAND_BYTES, HEADER.commandBytes)
  writeWords(signed, end, 'LE', [LC_CODE_SIGNATURE, SIGNATURE_COMMAND_BYTES, codeBytes, signatureBytes])
  // The last segment has the signature in it.
  const fileSize = signed.length - linkEdit.fileOffset
  signed.writeBigUInt64LE(BigInt(fileSize), linkEdit.at + SEGMENT.fileSize)
  if (numberAt(signed, linkEdit.at + SEGMENT.vmSize) < fileSize) {
    signed.writeBigUInt64LE(BigInt(roundUp(fileSize, MEMORY_PAGE)), linkEdit.at + SEGMENT.vmSize)
  }

  // One blob: the code directory, in slot 0.
  writeWords(signed, codeBytes, 'BE', [MAGIC_SIGNATURE, signatureBytes, 1, 0, SUPER_BLOB_BYTES])
  const directory = signed.subarray(codeBytes + SUPER_BLOB_BYTES)
  writeWords(directory, 0, 'BE', [
    ...[MAGIC_CODE_DIRECTORY, directoryBytes, DIRECTORY_VERSION, FLAGS],
    ...[DIRECTORY_BYTES + id.length, DIRECTORY_BYTES],
    // Hashes of other things than pages, such as entitlements; of pages; and how much these cover.
    ...[0, Math.ceil(codeBytes / PAGE), codeBytes],
  ])
  directory.set([HASH_BYTES, HASH_SHA256, 0, PAGE_BITS], 36)
  directory.writeBigUInt64BE(BigInt(text.fileOffset), 64)
  directory.writeBigUInt64BE(BigInt(text.fileSize), 72)
  directory.writeBigUInt64BE(MAIN_BINARY, 80)
  id.copy(directory, DIRECTORY_BYTES)
  for (let page = 0, to = DIRECTORY_BYTES + id.length; page < codeBytes; page += PAGE, to += HASH_BYTES) {
    const bytes = signed.subarray(page, Math.min(page + PAGE, codeBytes))
    createHash('sha256').update(bytes).digest().copy(directory, to)
  }
  return signed
}

/** `end`: of the load commands. */
function readCommands(program: Buffer): { end: number; text: Segment; linkEdit: Segment } {
  const segments = new Map<string, Segment>()
  let [at, firstSection] = [HEADER.size, program.length]
  for (let left = program.readUInt32LE(HEADER.commands); left > 0; left--) {
    const command = program.readUInt32LE(at)
    if (command === LC_CODE_SIGNATURE) throw new Error('the program for macOS is signed already')
    if (command === LC_SEGMENT_64) {
      const name = program.toString('latin1', at + SEGMENT.name, at + SEGMENT.name + 16).replace(/\0+$/, '')
      const [fileOffset, fileSize] = [SEGMENT.fileOffset, SEGMENT.fileSize].map((field) =>
        numberAt(program, at + field),
      )
      segments.set(name, { at, fileOffset: fileOffset ?? 0, fileSize: fileSize ?? 0 })
      for (let section = 0; section < program.readUInt32LE(at + SEGMENT.sections); section++) {
        const offset = program.readUInt32LE(at + SEGMENT.size + section * SECTION.size + SECTION.offset)
        // 0: its bytes are zeros that are not in the file.
        if (offset !== 0) firstSection = Math.min(firstSection, offset)
      }
    }
    at += program.readUInt32LE(at + 4)
  }
  const [text, linkEdit] = [segments.get('__TEXT'), segments.get('__LINKEDIT')]
  if (text === undefined || linkEdit === undefined || linkEdit.fileOffset + linkEdit.fileSize !== program.length) {
    throw new Error('the program for macOS does not end with its segment __LINKEDIT')
  }
  if (at + SIGNATURE_COMMAND_BYTES > firstSection) {
    throw new Error('the program for macOS has no place for a signature between its load commands and its code')
  }
  return { end: at, text, linkEdit }
}

/** A number of 64 bits; files are far smaller than 2^53. */
function numberAt(program: Buffer, at: number): number {
  return Number(program.readBigUInt64LE(at))
}

function writeWords(out: Buffer, at: number, order: 'LE' | 'BE', words: readonly number[]): void {
  for (const [index, word] of words.entries()) {
    if (order === 'LE') out.writeUInt32LE(word, at + 4 * index)
    else out.writeUInt32BE(word, at + 4 * index)
  }
}

function roundUp(bytes: number, unit: number): number {
  return Math.ceil(bytes / unit) * unit
}
