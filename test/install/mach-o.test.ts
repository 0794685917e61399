// The signature of a program for macOS is, byte for byte, the one that Go's linker writes: Apple silicon runs its programs. And what cannot be signed.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'
import { signAdHoc } from '../../build/login/mach-o.ts'
import { withoutCertificates } from '../../build/login/pe.ts'
import { PATIENT } from '../harness/patience.ts'

const [COMMANDS, COMMAND_BYTES, FIRST_COMMAND] = [16, 20, 32]
const LC_SEGMENT_64 = 0x19

describe('an ad hoc signature', () => {
  const dir = mkdtempSync(join(tmpdir(), 'portcullis-mach-o-'))
  let signedByGo: Buffer

  before(() => {
    writeFileSync(join(dir, 'main.go'), 'package main\n\nfunc main() {}\n')
    writeFileSync(join(dir, 'go.mod'), 'module example.com/empty\n\ngo 1.26.0\n')
    const env = { ...process.env, GOWORK: 'off', GOOS: 'darwin', GOARCH: 'arm64', CGO_ENABLED: '0' }
    const { status, stderr } = spawnSync('go', ['build', '-o', 'empty', '.'], { cwd: dir, env, encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    signedByGo = readFileSync(join(dir, 'empty'))
  }, PATIENT)
  after(() => rmSync(dir, { recursive: true, force: true }))

  test("is Go's", () => {
    const signed = signAdHoc(withoutSignature(signedByGo), 'a.out')
    // Buffers of megabytes: their difference is of no use in a message.
    assert.ok(signed.equals(signedByGo))
  })

  test('is refused to a program that has one', () => {
    assert.throws(() => signAdHoc(signedByGo, 'a.out'), /is signed already/)
  })

  test('is refused to a program with other bytes behind its last segment', () => {
    const longer = Buffer.concat([withoutSignature(signedByGo), Buffer.alloc(16)])
    assert.throws(() => signAdHoc(longer, 'a.out'), /does not end with its segment __LINKEDIT/)
  })

  test('is refused to a program without a place for its load command', () => {
    const full = withoutSignature(signedByGo)
    for (const at of commandsOf(full)) {
      if (full.readUInt32LE(at) !== LC_SEGMENT_64 || full.readUInt32LE(at + 64) === 0) continue
      full.writeUInt32LE(FIRST_COMMAND + full.readUInt32LE(COMMAND_BYTES) + 8, at + 72 + 48)
    }
    assert.throws(() => signAdHoc(full, 'a.out'), /has no place for a signature/)
  })
})

/** Where each load command begins. */
function commandsOf(program: Buffer): number[] {
  let at = FIRST_COMMAND
  return Array.from({ length: program.readUInt32LE(COMMANDS) }, () => {
    const begin = at
    at += program.readUInt32LE(at + 4)
    return begin
  })
}

/** As it was before Go's linker signed it: its signature is the last command, and the end of its last segment. */
function withoutSignature(signed: Buffer): Buffer {
  const commands = commandsOf(signed)
  const command = commands.at(-1) ?? 0
  const program = Buffer.from(signed.subarray(0, signed.readUInt32LE(command + 8)))
  program.writeUInt32LE(commands.length - 1, COMMANDS)
  program.writeUInt32LE(program.readUInt32LE(COMMAND_BYTES) - 16, COMMAND_BYTES)
  program.fill(0, command, command + 16)
  const isLinkEdit = (at: number): boolean => program.toString('latin1', at + 8, at + 18) === '__LINKEDIT'
  const linkEdit = commands.find((at) => program.readUInt32LE(at) === LC_SEGMENT_64 && isLinkEdit(at)) ?? 0
  program.writeBigUInt64LE(BigInt(program.length) - program.readBigUInt64LE(linkEdit + 40), linkEdit + 48)
  return program
}

describe('a program for Windows', () => {
  /** With its header at byte 64, and a signature of 40 bytes at byte 512. */
  function signedProgram(): Buffer {
    const program = Buffer.alloc(552, 7)
    program.writeUInt32LE(64, 60)
    program.writeUInt32LE(512, 64 + 24 + 144)
    program.writeUInt32LE(40, 64 + 24 + 148)
    return program
  }

  test('loses the signature that its new bytes would make invalid', () => {
    const program = withoutCertificates(signedProgram())
    const expected = signedProgram()
      .subarray(0, 512)
      .fill(0, 64 + 24 + 144, 64 + 24 + 152)
    assert.deepEqual(program, expected)
    assert.equal(withoutCertificates(program), program)
  })

  test('is refused with other bytes behind its signature', () => {
    assert.throws(() => withoutCertificates(Buffer.concat([signedProgram(), Buffer.alloc(8)])), /does not end with/)
  })
})
