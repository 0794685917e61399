// Client for commands that query a running gateway: HTTP to its admin listener (--admin), with the credentials of the kubeconfig's user if
// the URL is https. It follows no redirects, and keeps no connection.

import { errorMessage } from '../../kit/api/validation/error-message.ts'
import { UserError } from '../../kit/api/validation/field-errors.ts'
import { printable } from '../../kit/core/text/printable.ts'
import type { BoundedReply } from '../../kube/io/answers/fetch-bounded.ts'
import { KubeCredentials } from '../../kube/io/config-access.ts'
import { readNamedFile } from '../../pki/io/pki-files.ts'
import { type AdminCredential, adminFault, mismatchOf, sendAdmin } from '../io/admin-request.ts'

/** Values of the flags of `forAdmin`. */
export interface AdminClientOptions {
  /** `http://HOST:PORT` or `https://HOST:PORT`. */
  readonly admin: string
  /** PEM; default: Node's CAs, and that of the kubeconfig's cluster. */
  readonly caFile?: string
  /** Its bearer token is sent instead of the kubeconfig's credentials. */
  readonly tokenFile?: string
  /** Default: as in kubectl. */
  readonly kubeconfig?: string
  /** Default: the kubeconfig's current one. */
  readonly context?: string
}

export interface AdminRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'PUT' | 'POST' | 'DELETE'
  /** With the query: `/api/v1/top?by=user`. */
  readonly path: string
  /** Sent as JSON. Default: none. */
  readonly body?: unknown
  /** For the complete response; for a stream, its head. Default 30 s. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

export interface AdminAnswer {
  readonly contentType: string
  readonly body: Buffer
}

const TIMEOUT_MS = 30_000
/** Profiles are the largest. */
const MAX_BODY_BYTES = 256 * 1024 * 1024
const MAX_LINE = 1024 * 1024

/** Every method rejects with a UserError if the gateway refuses or doesn't answer. */
export class AdminClient {
  readonly url: URL
  readonly #options: AdminClientOptions
  #credential: Promise<AdminCredential> | undefined

  /** Sends nothing yet. @throws {UserError} */
  constructor(options: AdminClientOptions) {
    this.url = readUrl(options.admin)
    this.#options = options
  }

  /** The parsed JSON response. */
  async json(request: AdminRequest): Promise<unknown> {
    const { body } = await this.send(request)
    try {
      return JSON.parse(body.toString())
    } catch {
      throw new UserError(`${this.url.origin}${request.path} does not answer with JSON`, 'check --admin')
    }
  }

  async send(request: AdminRequest): Promise<AdminAnswer> {
    const signal = joined(request.signal, AbortSignal.timeout(request.timeoutMs ?? TIMEOUT_MS))
    const reply = await this.#open(request, signal)
    return { contentType: reply.header('content-type'), body: await this.#whole(reply, MAX_BODY_BYTES) }
  }

  /** The lines of an endless response, as they arrive, skipping empty ones. Ends without an error when the signal aborts. */
  async *lines(request: AdminRequest): AsyncGenerator<string> {
    const head = new AbortController()
    const late = setTimeout(() => head.abort(), request.timeoutMs ?? TIMEOUT_MS)
    try {
      const reply = await this.#open(request, joined(request.signal, head.signal))
      clearTimeout(late)
      yield* reply.lines(MAX_LINE)
    } catch (error) {
      if (request.signal?.aborted) return
      throw error instanceof UserError ? error : this.#unanswered(error)
    } finally {
      clearTimeout(late)
    }
  }

  async #open({ method = 'GET', path, body }: AdminRequest, signal: AbortSignal): Promise<BoundedReply> {
    this.#credential ??= this.#readCredential()
    const credential = await this.#credential
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const sent = { method, body: payload, credential, signal }
    const reply = await sendAdmin(new URL(path, this.url), sent).catch((error: unknown) => {
      throw this.#unanswered(error)
    })
    if (reply.code >= 200 && reply.code < 300) return reply
    throw refusal(reply.code, (await this.#whole(reply, MAX_LINE)).toString().trim(), this.url.origin)
  }

  #whole(reply: BoundedReply, maxBytes: number): Promise<Buffer> {
    return reply.whole(maxBytes).catch((error: unknown) => {
      throw this.#unanswered(error)
    })
  }

  #unanswered(error: unknown): UserError {
    return new UserError(`${this.url.origin} does not answer: ${adminFault(error)}`, unansweredFix(this.url, error))
  }

  async #readCredential(): Promise<AdminCredential> {
    const { caFile, tokenFile, kubeconfig = '', context } = this.#options
    const token = tokenFile === undefined ? '' : readNamedFile('--token-file', tokenFile).trim()
    const headers: Record<string, string> = token === '' ? {} : { authorization: `Bearer ${token}` }
    const ca = caFile === undefined ? '' : readNamedFile('--ca-file', caFile)
    const own = { headers, ca, publicCAs: ca === '', cert: '', key: '', serverName: '' }
    // Sent in the clear only on explicit request: never a credential that happens to be in a kubeconfig.
    if (token !== '' || this.url.protocol === 'http:') return own
    const credentials = new KubeCredentials({ kubeconfigFile: kubeconfig, ...(context !== undefined && { context }) })
    const access = await credentials.access().catch((error: unknown) => {
      throw new UserError(errorMessage(error), 'see --kubeconfig and --context')
    })
    const { tls } = access
    return { ...own, headers: access.headers, ca: ca === '' ? tls.ca : ca, cert: tls.cert, key: tls.key }
  }
}

function unansweredFix({ protocol, host }: URL, error: unknown): string {
  const mismatch = mismatchOf(error)
  if (mismatch === 'plain') return `write --admin http://${host}, if that is its admin listener`
  if (mismatch === 'untrusted') return 'name its CA with --ca-file'
  if (mismatch === 'hung-up' && protocol === 'http:') return `if it speaks TLS, write --admin https://${host}`
  return 'is the gateway running, and is --admin its admin listener?'
}

function joined(one: AbortSignal | undefined, other: AbortSignal): AbortSignal {
  return one === undefined ? other : AbortSignal.any([one, other])
}

function refusal(code: number, said: string, origin: string): UserError {
  // The server need not be a gateway.
  const text = said === '' ? '' : `: ${printable(said.slice(0, 500).replaceAll('\n', '; '))}`
  const fix =
    code === 401
      ? 'see --kubeconfig, --context and --token-file'
      : code === 403
        ? 'the ClusterRoles portcullis-insight-view and portcullis-insight-admin allow it'
        : code === 404
          ? 'is --admin the admin listener of a gateway of this version?'
          : 'the log of the gateway may say more'
  return new UserError(`${origin} answers ${code}${text}`, fix)
}

/** @throws {UserError} */
function readUrl(text: string): URL {
  const url = URL.parse(text)
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '') return url
  throw new UserError(`${JSON.stringify(text)} is not an http or https URL`, 'write --admin http://127.0.0.1:9090')
}
