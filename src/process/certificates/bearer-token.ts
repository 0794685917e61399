// The bearer token of a request, and comparison with a token from a file.

import { createHash, timingSafeEqual } from 'node:crypto'
import { readBearerToken } from '../../gateway/core/request/websocket-token.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'

/** undefined = none. */
export function bearerOf(authorization: string): string | undefined {
  const read = readBearerToken(['authorization', authorization])
  return read.kind === 'token' ? read.token : undefined
}

export function isSameToken(given: string, expected: string): boolean {
  // Hashes have equal length, so timing reveals nothing.
  return timingSafeEqual(hash(given), hash(expected))
}

/** @throws {UserError} */
export function readTokenFile(flag: string, file: string): string {
  const text = readNamedFile(flag, file).trim()
  // RFC 6750 section 2.1: the characters that a client can send.
  if (/^[A-Za-z0-9._~+/-]+=*$/.test(text)) return text
  const fix = "write one line of letters, digits and -._~+/=, for example the output of 'openssl rand -hex 32'"
  throw new UserError(`${flag} ${file} holds no bearer token`, fix)
}

function hash(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
