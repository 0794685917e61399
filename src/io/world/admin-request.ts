// One request to the admin listener of a gateway, by a command or by another replica. It follows no redirects and keeps no connection.

import { X509Certificate } from 'node:crypto'
import { type IncomingMessage, request as requestPlain } from 'node:http'
import { type RequestOptions, request as requestTls } from 'node:https'
import { rootCertificates } from 'node:tls'
import type { Charge } from '../../api/ports/stream.ts'
import { errorMessage } from '../../api/validation/error-message.ts'
import type { AnswerLimits } from '../../core/answers/answer-limits.ts'
import { AnswerReader } from '../../core/answers/answer-reader.ts'
import { AnswerTooLargeError } from '../../core/answers/call-errors.ts'
import { limitInterimHeads } from '../answers/interim-heads.ts'
import { AnswerBytes, COUNT_SEED } from '../answers/thread-answers.ts'

/** Who asks, and whose certificate is accepted. */
export interface AdminCredential {
  readonly headers: Readonly<Record<string, string>>
  /** PEM; '' = none beside. */
  readonly ca: string
  /** PEM; the certificate must be this very one, whatever its names are. Default: it need not. */
  readonly pinned?: string
  /** Whether those of Node are accepted, too. */
  readonly publicCAs: boolean
  /** PEM; '' = none. */
  readonly cert: string
  readonly key: string
  /** The name that the certificate has to be for; '' = the URL's. */
  readonly serverName: string
}

export interface AdminSend {
  readonly method: string
  /** JSON; undefined = none. */
  readonly body: string | undefined
  readonly credential: AdminCredential
  /** Ends the request, and its answer. */
  readonly signal: AbortSignal
}

export interface AdminReply {
  readonly code: number
  readonly contentType: string
  /** Throws when the answer breaks off. */
  readonly chunks: AsyncIterable<Buffer>
  /** Ends it, instead of reading it. */
  discard(): void
}

/** Resolves with the head of the answer. @throws (rejects) the system's error; `adminFault` says it in words */
export async function sendAdmin(url: URL, { method, body, credential, signal }: AdminSend): Promise<AdminReply> {
  const headers = {
    ...credential.headers,
    'user-agent': 'portcullis',
    ...(body !== undefined && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  }
  const options: RequestOptions = { method, headers, agent: false, signal }
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const secure = url.protocol === 'https:'
    const sent = secure ? requestTls(url, { ...options, ...tlsOf(credential) }) : requestPlain(url, options)
    sent.on('error', reject)
    limitInterimHeads(sent)
    sent.on('response', resolve)
    sent.end(body)
  })
  const { statusCode: code = 0, headers: fields } = response
  const discard = (): void => void response.on('error', () => undefined).destroy()
  return { code, contentType: fields['content-type'] ?? '', chunks: response, discard }
}

/**
 * The JSON of an answer, read within the limits of what other machines answer.
 * @param charge who pays for its memory while it comes
 * @throws (rejects) when it breaks off, is larger, finds no room, or is not JSON
 */
export async function answerJson({ chunks }: AdminReply, limits: AnswerLimits, charge: Charge): Promise<unknown> {
  const memory = new AnswerBytes(charge)
  const reader = new AnswerReader(limits.bytes, memory)
  try {
    for await (const chunk of chunks) {
      const fault = reader.add(chunk)
      if (fault === 'too-large') throw new AnswerTooLargeError(`more than ${limits.bytes} bytes`)
      if (fault === 'no-room') throw memory.full()
    }
    return JSON.parse(reader.counted(limits, COUNT_SEED))
  } finally {
    reader.drop()
  }
}

/** For commands, which have a process of their own: nobody else waits for its memory. @throws (rejects) when it breaks off, or has more bytes */
export async function wholeBody({ chunks }: AdminReply, maxBytes: number): Promise<Buffer> {
  const all: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    all.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) throw new Error(`the answer has more than ${maxBytes} bytes`)
  }
  return Buffer.concat(all)
}

/** Its lines as they come; empty ones are left out. @throws when it breaks off, or a line is longer */
export async function* linesOf({ chunks }: AdminReply, maxLine: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of chunks) {
    const lines = `${rest}${decoder.decode(chunk, { stream: true })}`.split('\n')
    rest = lines.pop() ?? ''
    if (rest.length > maxLine) throw new Error('a line is too long')
    for (const line of lines) if (line !== '') yield line
  }
  if (rest !== '') yield rest
}

/** One line. Of several addresses each has failed: Node says so in an AggregateError without a message. */
export function adminFault(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(adminFault).join(', ')
  if (error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError'))
    return 'it takes too long'
  switch (mismatchOf(error)) {
    case 'plain':
      return 'it does not speak TLS'
    case 'untrusted':
      return 'its certificate is not signed by a known CA'
    default:
      // OpenSSL's messages end with a line break.
      return errorMessage(error).replaceAll(/\s+/g, ' ').trim()
  }
}

/**
 * How what was said and what is there do not fit: `plain`, TLS was spoken to a port without it; `hung-up`, the connection was closed or
 * answered with something else than HTTP, as a port with TLS does; `untrusted`, the certificate is of another CA.
 */
export function mismatchOf(error: unknown): 'plain' | 'hung-up' | 'untrusted' | undefined {
  const code = String(error instanceof Error ? Reflect.get(error, 'code') : '')
  if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER') {
    return /wrong version number|packet length too long/.test(errorMessage(error)) ? 'plain' : undefined
  }
  if (code === 'ECONNRESET' || code.startsWith('HPE_')) return 'hung-up'
  return UNTRUSTED.has(code) ? 'untrusted' : undefined
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

function tlsOf({ ca, pinned = '', publicCAs, cert, key, serverName }: AdminCredential): RequestOptions {
  return {
    ...(pinned === ''
      ? { ca: [...(publicCAs ? rootCertificates : []), ...(ca === '' ? [] : [ca])] }
      : pinnedTo(pinned)),
    ...(cert !== '' && { cert, key }),
    ...(serverName !== '' && { servername: serverName }),
  }
}

function pinnedTo(pem: string): RequestOptions {
  const { raw } = new X509Certificate(pem)
  return {
    ca: pem,
    allowPartialTrustChain: true,
    checkServerIdentity: (_, peer) => (raw.equals(peer.raw) ? undefined : new Error('it has another certificate')),
  }
}
