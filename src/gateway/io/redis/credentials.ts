// The gateway's credentials for Redis, and the CAs that verify Redis: passwords and TLS files, reread whenever they change.

import { UserError } from '../../../kit/api/validation/field-errors.ts'
import { nodePemChecks } from '../../../pki/io/pem-checks.ts'
import { readNamedFile } from '../../../pki/io/pki-files.ts'

export interface RedisCredentials {
  /** '' = the URL's password, or none. */
  readonly password: string
  /** PEM of the CAs that verify Redis; '' = the system's. */
  readonly ca: string
  /** PEM of a client certificate and its key; '' = none. */
  readonly cert?: string
  readonly key?: string
  /** Password of `sentinelUser` at the Sentinels; '' = none. */
  readonly sentinelPassword?: string
}

/** File names; '' = none. */
interface RedisFiles {
  readonly redisPasswordFile: string
  readonly redisSentinelPasswordFile: string
  readonly redisCaFile: string
  readonly redisCertFile: string
  readonly redisKeyFile: string
}

/** The files that are set. */
export function redisFiles(files: RedisFiles): readonly string[] {
  const { redisPasswordFile, redisSentinelPasswordFile, redisCaFile, redisCertFile, redisKeyFile } = files
  return [redisPasswordFile, redisSentinelPasswordFile, redisCaFile, redisCertFile, redisKeyFile].filter(
    (file) => file !== '',
  )
}

/** @throws {UserError} if one cannot be read or used; it quotes nothing of their contents */
export function readRedisCredentials(files: RedisFiles): RedisCredentials {
  const ca = readPem('--redis-ca-file', files.redisCaFile, nodePemChecks.certificatesError)
  const cert = readPem('--redis-cert-file', files.redisCertFile, nodePemChecks.certificatesError)
  const key = readPem('--redis-key-file', files.redisKeyFile, nodePemChecks.privateKeyError)
  if (cert !== '' && !nodePemChecks.keyMatches(cert, key)) {
    const message = `--redis-key-file ${files.redisKeyFile} does not belong to ${files.redisCertFile}`
    throw new UserError(message, 'name the key that the certificate was issued for')
  }
  return {
    password: readPassword('--redis-password-file', files.redisPasswordFile),
    sentinelPassword: readPassword('--redis-sentinel-password-file', files.redisSentinelPasswordFile),
    ca,
    cert,
    key,
  }
}

function readPassword(flag: string, file: string): string {
  if (file === '') return ''
  const password = readNamedFile(flag, file).trim()
  if (password === '') throw new UserError(`${flag} ${file} is empty`, 'write the password into it')
  if (/[\r\n]/.test(password)) throw new UserError(`${flag} ${file} has more than one line`, 'write only the password')
  return password
}

function readPem(flag: string, file: string, errorOf: (pem: string) => string): string {
  if (file === '') return ''
  const pem = readNamedFile(flag, file)
  const problem = errorOf(pem)
  if (problem !== '') throw new UserError(`${flag} ${file}: ${problem}`, 'name a PEM file')
  return pem
}
