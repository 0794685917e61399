// Files of the store to which recordings are moved: an access key, and CAs. Reread whenever they change.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'

interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** That of temporary credentials; '' = they are not temporary. */
  readonly sessionToken: string
}

/** Reread whenever the files change. */
export interface S3Files {
  credentials: S3Credentials
  /** PEM; '' = the system's CAs. */
  ca: string
}

/** File names; '' = none. */
interface S3FileNames {
  readonly sessionRecordingS3CredentialsFile: string
  readonly sessionRecordingS3CaFile: string
}

export function s3FileNames(names: S3FileNames): readonly string[] {
  return [names.sessionRecordingS3CredentialsFile, names.sessionRecordingS3CaFile].filter((file) => file !== '')
}

/** @throws {UserError} if one cannot be read or used; it quotes nothing of their contents */
export function readS3Files({
  sessionRecordingS3CredentialsFile: file,
  sessionRecordingS3CaFile,
}: S3FileNames): S3Files {
  const flag = '--session-recording-s3-credentials-file'
  const credentials = parseCredentials(readNamedFile(flag, file))
  if (credentials === undefined) {
    const fix = 'write three lines: [default], aws_access_key_id = ID, aws_secret_access_key = KEY'
    throw new UserError(`${flag} ${file} has no access key`, fix)
  }
  return { credentials, ca: readCas(sessionRecordingS3CaFile) }
}

function readCas(file: string): string {
  if (file === '') return ''
  const flag = '--session-recording-s3-ca-file'
  const ca = readNamedFile(flag, file)
  const problem = nodePemChecks.certificatesError(ca)
  if (problem !== '') throw new UserError(`${flag} ${file}: ${problem}`, 'name a PEM file')
  return ca
}

const SECTION = /^\[(.*)\]$/
const ENTRY = /^([a-z_]+)\s*=\s*([\x21-\x7e]+)$/i

/** In the form of AWS's shared credentials file: the profile `default`. Undefined = it has no access key. It quotes nothing. */
export function parseCredentials(text: string): S3Credentials | undefined {
  const found = new Map<string, string>()
  let isDefault = false
  for (const line of text.split('\n')) {
    const [, section] = SECTION.exec(line.trim()) ?? []
    if (section !== undefined) isDefault = section.trim() === 'default'
    const [, name = '', value = ''] = ENTRY.exec(line.trim()) ?? []
    if (isDefault && name !== '') found.set(name.toLowerCase(), value)
  }
  const accessKeyId = found.get('aws_access_key_id')
  const secretAccessKey = found.get('aws_secret_access_key')
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: found.get('aws_session_token') ?? '' }
}
