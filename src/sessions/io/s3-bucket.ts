// A bucket of an S3 store, and the one thing that is done there: a file becomes an object, of which is known afterwards that it is there, whole.

import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { AwsV4Signer } from 'aws4fetch'
import { Agent } from 'undici'
import type { Clock } from '../../kit/api/ports.ts'
import type { Charge } from '../../kit/api/stream.ts'
import { serverCharge } from '../../kit/core/shares/charge.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { http1Connector } from '../../kit/io/dial/http1-connector.ts'
import { SHORT_TEXT_BYTES, TEXT } from '../../kube/core/answers/answer-limits.ts'
import { type BoundedReply, faultText, fetchBounded } from '../../kube/io/answers/fetch-bounded.ts'
import type { S3Files } from './s3-files.ts'

interface S3BucketOptions {
  /** With the bucket: `https://s3.example.com/audit`. */
  readonly url: string
  readonly region: string
  readonly files: S3Files
  /** The store compares it with its own. */
  readonly clock: Pick<Clock, 'now'>
  /** How long an upload may take, milliseconds, and more for what is large. Default 60 s. */
  readonly uploadMs?: number
}

interface UploadFailure {
  readonly why: string
  /** '' = nothing but to wait, or it is not known. */
  readonly fix: string
}

/** gone: there is no such file any more. */
export type Upload = { readonly kind: 'stored' | 'gone' } | ({ readonly kind: 'failed' } & UploadFailure)

const UPLOAD_MS = 60_000
/** What is slower is given up. */
const SLOWEST_BYTES_PER_MS = 128
/** What a store takes in one request. */
const MOST_STORED_BYTES = 5 * 1024 * 1024 * 1024
const EMPTY_SHA256 = createHash('sha256').digest('hex')
/** Metadata by which an object is recognized. */
const SHA256_FIELD = 'x-amz-meta-sha256'

/** What is to be in the bucket. */
interface Content {
  readonly bytes: number
  /** Hex. */
  readonly sha256: string
  /** Base64. */
  readonly md5: string
}

export class S3Bucket {
  readonly #options: S3BucketOptions
  readonly #charge: Charge
  #agent: Agent
  #agentCa: string

  constructor(options: S3BucketOptions) {
    this.#options = options
    this.#charge = serverCharge(new URL(options.url).origin)
    this.#agentCa = options.files.ca
    this.#agent = agentTo(options.files.ca)
  }

  /** @param file must not change any more */
  async put(file: string, key: string, stopped: AbortSignal): Promise<Upload> {
    const { uploadMs = UPLOAD_MS } = this.#options
    let handle: FileHandle | undefined
    try {
      handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW)
      const content = await contentOf(handle, stopped)
      if (content.bytes > MOST_STORED_BYTES) return failure(`it has more than ${MOST_STORED_BYTES} bytes`)
      const withinMs = uploadMs + Math.ceil(content.bytes / SLOWEST_BYTES_PER_MS)
      const signal = AbortSignal.any([stopped, AbortSignal.timeout(withinMs)])
      return (await this.#send(handle, key, content, signal)) ?? (await this.#verify(key, content, signal))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { kind: 'gone' }
      return failure(faultText(error))
    } finally {
      await handle?.close().catch(() => undefined)
    }
  }

  async stop(): Promise<void> {
    await this.#agent.destroy()
  }

  /** The same again is the same object. @returns undefined = the store has accepted it */
  async #send(handle: FileHandle, key: string, content: Content, signal: AbortSignal): Promise<Upload | undefined> {
    const { bytes, sha256, md5 } = content
    // The store compares both with what arrives. Buckets whose objects are locked demand the second.
    const headers = { 'x-amz-content-sha256': sha256, 'content-md5': md5, [SHA256_FIELD]: sha256 }
    const body = handle.createReadStream({ start: 0, autoClose: false })
    try {
      const reply = await this.#call('PUT', key, { ...headers, 'content-length': String(bytes) }, signal, body)
      const text = await this.#textOf(reply)
      return reply.code === 200 ? undefined : { kind: 'failed', ...storeError(reply.code, text) }
    } finally {
      body.destroy()
    }
  }

  /** Not every server that answers 200 has stored something. */
  async #verify(key: string, { bytes, sha256 }: Content, signal: AbortSignal): Promise<Upload> {
    const reply = await this.#call('HEAD', key, { 'x-amz-content-sha256': EMPTY_SHA256 }, signal)
    await this.#textOf(reply)
    if (reply.code !== 200) {
      const { why, fix } = storeError(reply.code, reply.code === 403 ? '<Code>AccessDenied</Code>' : '')
      return { kind: 'failed', why: `it was sent, but when asked for it ${why}`, fix }
    }
    const isSame = reply.header(SHA256_FIELD) === sha256 && reply.header('content-length') === String(bytes)
    return isSame ? { kind: 'stored' } : failure('it was sent, but the store has a different object')
  }

  async #call(
    method: 'PUT' | 'HEAD',
    key: string,
    fields: Readonly<Record<string, string>>,
    signal: AbortSignal,
    body?: Readable,
  ): Promise<BoundedReply> {
    const { url, region, files, clock } = this.#options
    const { sessionToken, ...credentials } = files.credentials
    const signer = new AwsV4Signer({
      ...credentials,
      ...(sessionToken !== '' && { sessionToken }),
      service: 's3',
      region,
      method,
      url: `${url}/${key}`,
      headers: fields,
      datetime: new Date(clock.now()).toISOString().replaceAll(/[:-]|\.\d{3}/g, ''),
    })
    const signed = await signer.sign()
    const headers = Object.fromEntries(signed.headers.entries())
    return await fetchBounded(signed.url, { method, headers, body, signal, connections: this.#connections() })
  }

  /** '' = it cannot be read. */
  #textOf(reply: BoundedReply): Promise<string> {
    return reply.countedText({ ...TEXT, bytes: SHORT_TEXT_BYTES }, this.#charge).catch(() => '')
  }

  #connections(): Agent {
    const { ca } = this.#options.files
    if (ca !== this.#agentCa) {
      void this.#agent.close()
      this.#agentCa = ca
      this.#agent = agentTo(ca)
    }
    return this.#agent
  }
}

/** Uploads have deadlines of their own. */
function agentTo(ca: string): Agent {
  const connect = http1Connector({ timeout: 0, allowH2: false, ...(ca !== '' && { ca }) })
  return new Agent({ connections: 1, allowH2: false, headersTimeout: 0, bodyTimeout: 0, connect })
}

async function contentOf(handle: FileHandle, stopped: AbortSignal): Promise<Content> {
  const [sha256, md5] = [createHash('sha256'), createHash('md5')]
  let bytes = 0
  for await (const piece of handle.createReadStream({ start: 0, autoClose: false })) {
    stopped.throwIfAborted()
    sha256.update(piece)
    md5.update(piece)
    bytes += piece.length
  }
  return { bytes, sha256: sha256.digest('hex'), md5: md5.digest('base64') }
}

function failure(why: string): Upload {
  return { kind: 'failed', why, fix: '' }
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

/**
 * What a store says when it does not take a recording, and what can be done about it.
 * @param body of the answer, or its beginning; it may be anything
 */
export function storeError(code: number, body: string): UploadFailure {
  const [, name = ''] = CODE.exec(body) ?? []
  const [, message = ''] = MESSAGE.exec(body) ?? []
  const isRedirect = code >= 300 && code < 400
  const said = [name, printable(message)].filter((one) => one !== '').join(': ')
  const why = `the store answers ${code}${said === '' ? '' : `, ${said}`}`
  return { why, fix: FIXES[name] ?? (isRedirect ? PLACE : '') }
}
