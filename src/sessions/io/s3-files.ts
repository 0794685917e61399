// Files of the store to which recordings are moved: an access key, and CAs. Reread whenever they change.

import { UserError } from '../../kit/api/validation/field-errors.ts'
import { nodePemChecks } from '../../pki/io/pem-checks.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'
import { parseCredentials } from '../core/uploads/credentials.ts'
import type { S3Files } from './s3-bucket.ts'

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
