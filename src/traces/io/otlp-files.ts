// Files of the span exporter: the collector's CA, and header fields such as a token. Reread whenever they change.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'

export interface OtlpFiles {
  /** PEM; '' = the system's CAs. */
  ca: string
  /** Keyed by name, in lower case. */
  headers: Readonly<Record<string, string>>
}

/** File names; '' = none. */
interface OtlpFileNames {
  readonly tracingOtlpCaFile: string
  readonly tracingOtlpHeadersFile: string
}

export function otlpFileNames({ tracingOtlpCaFile, tracingOtlpHeadersFile }: OtlpFileNames): readonly string[] {
  return [tracingOtlpCaFile, tracingOtlpHeadersFile].filter((file) => file !== '')
}

/** @throws {UserError} if one cannot be read or used; it quotes no value, which may be secret */
export function readOtlpFiles({ tracingOtlpCaFile: caFile, tracingOtlpHeadersFile: file }: OtlpFileNames): OtlpFiles {
  const ca = caFile === '' ? '' : readNamedFile('--tracing-otlp-ca-file', caFile)
  const problem = ca === '' ? '' : nodePemChecks.certificatesError(ca)
  if (problem !== '') throw new UserError(`--tracing-otlp-ca-file ${caFile}: ${problem}`, 'name a PEM file')
  if (file === '') return { ca, headers: {} }
  const headers: Record<string, string> = {}
  for (const [i, line] of readNamedFile('--tracing-otlp-headers-file', file).split('\n').entries()) {
    if (line.trim() === '') continue
    const [, name = '', value = ''] = HEADER.exec(line.trim()) ?? []
    const where = `--tracing-otlp-headers-file ${file}, line ${i + 1}`
    if (name === '') throw new UserError(`${where}, is not a header field`, 'write: Authorization: Bearer TOKEN')
    if (OWN.has(name.toLowerCase())) throw new UserError(`${where}: ${name} is set by the gateway`, 'remove the line')
    headers[name.toLowerCase()] = value
  }
  return { ca, headers }
}

/** A token, and visible ASCII. */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\t]*)$/
const OWN: ReadonlySet<string> = new Set([
  'content-type',
  'content-encoding',
  'content-length',
  'host',
  'connection',
  'transfer-encoding',
])
