// What an S3 store says when it does not take a recording, and what can be done about it.

import { printable } from '../../../kit/core/text/printable.ts'

export interface UploadFailure {
  readonly why: string
  /** '' = nothing but to wait, or it is not known. */
  readonly fix: string
}

const CODE = /<Code>([A-Za-z0-9.]{1,64})<\/Code>/
const MESSAGE = /<Message>([^<]{1,300})/

const CREDENTIALS = 'check --session-recording-s3-credentials-file'
const PLACE = 'check --session-recording-s3-endpoint and --session-recording-s3-region; redirects are not followed'
const FIXES: Readonly<Record<string, string>> = {
  AccessDenied: 'allow s3:PutObject and s3:GetObject on the bucket to these credentials',
  ExpiredToken: CREDENTIALS,
  InvalidAccessKeyId: CREDENTIALS,
  SignatureDoesNotMatch: CREDENTIALS,
  AuthorizationHeaderMalformed: PLACE,
  PermanentRedirect: PLACE,
  TemporaryRedirect: PLACE,
  NoSuchBucket: 'create the bucket, or name another with --session-recording-s3-bucket',
  RequestTimeTooSkewed: 'set the clock of this machine, or of the store',
}

/** @param body of the answer, or its beginning; it may be anything */
export function storeError(code: number, body: string): UploadFailure {
  const [, name = ''] = CODE.exec(body) ?? []
  const [, message = ''] = MESSAGE.exec(body) ?? []
  const isRedirect = code >= 300 && code < 400
  const said = [name, printable(message)].filter((one) => one !== '').join(': ')
  const why = `the store answers ${code}${said === '' ? '' : `, ${said}`}`
  return { why, fix: FIXES[name] ?? (isRedirect ? PLACE : '') }
}
