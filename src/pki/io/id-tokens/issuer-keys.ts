// An OpenID provider's signing keys: fetched at the start, every ten minutes, and when a token is signed with an unknown key, but then at most every
// five seconds, whatever clients send. Fetched keys are kept while the provider is down.

import { getCACertificates } from 'node:tls'
import { isRecord } from '../../../kit/api/json/object-shape.ts'
import type { Logger } from '../../../kit/api/ports.ts'
import { serverCharge } from '../../../kit/core/shares/charge.ts'
import type { DialGuard } from '../../../kit/io/dial/dial-guard.ts'
import { DOCUMENT } from '../../../kube/core/answers/answer-limits.ts'
import { faultText, fetchBounded } from '../../../kube/io/answers/fetch-bounded.ts'
import { readKeySet, type SigningKey } from './signing-keys.ts'

interface IssuerKeysOptions {
  readonly issuer: string
  /** Where its configuration is; '' = where OpenID Connect Discovery has it. Default ''. */
  readonly discoveryUrl?: string
  /** PEM of the CAs that verify it, read each time, so that they may be replaced. undefined = those that Node and the machine trust. @throws */
  ca(): string | Buffer | undefined
  /** Which addresses may be connected to. Default: all. */
  readonly guard?: DialGuard
  /** How long its keys stay in use without having been read again, milliseconds. Default: until they are. */
  readonly keepMs?: number
  readonly log: Logger
  /** Monotonic milliseconds. */
  monotonic(): number
  /** Called after each attempt. */
  onFetched(succeeded: boolean): void
  /** Default: over https. */
  readonly fetch?: (url: string) => Promise<unknown>
}

/** Minimum time between the starts of two fetches. */
export const MIN_FETCH_INTERVAL_MS = 5_000
/** A key withdrawn by the provider stays valid for at most this long. */
const REFRESH_MS = 10 * 60_000
const WELL_KNOWN = '/.well-known/openid-configuration'

export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  #keys: readonly SigningKey[] = []
  #fetching: Promise<void> | undefined
  #startedMs = Number.NEGATIVE_INFINITY
  #failed = false
  #known = false
  #readMs = 0
  #message = ''
  #timed = false
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  /** A new list after each fetch that changed the keys. */
  get keys(): readonly SigningKey[] {
    return this.#keys
  }

  /** Why the last attempt failed; '' = it did not, or there was none. */
  get message(): string {
    return this.#message
  }

  /** How long after an attempt the next one is due, milliseconds. */
  get nextMs(): number {
    return this.#failed ? MIN_FETCH_INTERVAL_MS : REFRESH_MS
  }

  /** Fetches from now on without being told to. */
  start(): void {
    this.#timed = true
    void this.#fetch()
  }

  /** Fetches now, unless that is happening already. Never rejects. */
  fetchNow(): Promise<void> {
    return this.#fetching ?? this.#fetch()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  /** A token names a key that is not among `keys`. Resolves when they have been fetched again; undefined = too early for that. Never rejects. */
  refetch(): Promise<void> | undefined {
    if (this.#fetching !== undefined) return this.#fetching
    if (this.#stopped || this.#options.monotonic() - this.#startedMs < MIN_FETCH_INTERVAL_MS) return undefined
    return this.#fetch()
  }

  #fetch(): Promise<void> {
    clearTimeout(this.#timer)
    this.#startedMs = this.#options.monotonic()
    this.#fetching = this.#fetchOnce().finally(() => {
      this.#fetching = undefined
      if (this.#stopped || !this.#timed) return
      this.#timer = setTimeout(() => void this.#fetch(), this.nextMs)
      this.#timer.unref()
    })
    return this.#fetching
  }

  async #fetchOnce(): Promise<void> {
    const { issuer, log, onFetched } = this.#options
    try {
      const keys = await this.#read()
      if (this.#stopped) return
      this.#keys = keys
      this.#readMs = this.#options.monotonic()
      if (this.#failed || !this.#known) log.info('keys of the OpenID provider read', { issuer, keys: keys.length })
      this.#failed = false
      this.#known = true
      this.#message = ''
      onFetched(true)
    } catch (error) {
      if (this.#stopped) return
      this.#fail(error instanceof Error ? error.message : String(error))
      onFetched(false)
    }
  }

  #fail(reason: string): void {
    const { issuer, log, keepMs = Number.POSITIVE_INFINITY, monotonic } = this.#options
    const ended = this.#known && monotonic() - this.#readMs > keepMs
    if (ended) {
      this.#keys = []
      this.#known = false
    }
    const message = this.#known
      ? 'the OpenID provider cannot be asked for its keys; those known stay in use'
      : 'the OpenID provider cannot be asked for its keys; its tokens are refused until it can'
    if (!this.#failed || ended) log.warn(message, { issuer, reason })
    this.#failed = true
    this.#message = reason
  }

  async #read(): Promise<readonly SigningKey[]> {
    const { issuer, discoveryUrl = '' } = this.#options
    const fetch = this.#options.fetch ?? ((url: string) => fetchJson(url, this.#options))
    const standard = `${issuer.replace(/\/$/, '')}${WELL_KNOWN}`
    const configuration = await fetch(discoveryUrl === '' ? standard : discoveryUrl)
    const { issuer: named, jwks_uri: uri } = isRecord(configuration) ? configuration : {}
    // OpenID Connect Discovery 1.0, section 4.3: they must match.
    if (named !== issuer) throw new Error(`the provider says that its issuer is ${JSON.stringify(named)}`)
    if (typeof uri !== 'string' || !URL.canParse(uri) || new URL(uri).protocol !== 'https:') {
      throw new Error('the provider names no jwks_uri that begins with https://')
    }
    const keys = readKeySet(await fetch(uri))
    if (keys === undefined) throw new Error(`${uri} does not answer with a JWK Set`)
    if (keys.length === 0) throw new Error(`${uri} has no key that verifies signatures`)
    return keys
  }
}

// One GET of a JSON document over https, with a deadline. Redirects are not followed.
const TIMEOUT_MS = 10_000
const HTTPS_PORT = 443

interface Connecting {
  ca(): string | Buffer | undefined
  readonly guard?: DialGuard
}

/** @throws (rejects) with a one-line description */
async function fetchJson(url: string, connecting: Connecting): Promise<unknown> {
  const signal = AbortSignal.timeout(TIMEOUT_MS)
  const text = await fetchText(url, connecting, signal).catch((error: unknown) => {
    throw new Error(`${url}: ${signal.aborted ? `no answer within ${TIMEOUT_MS / 1000} s` : faultText(error)}`)
  })
  try {
    return JSON.parse(text)
  } catch {
    throw new Error(`${url} does not answer with JSON`)
  }
}

/** The text may be parsed. */
async function fetchText(url: string, { ca, guard }: Connecting, signal: AbortSignal): Promise<string> {
  const { hostname, port, origin } = new URL(url)
  const server = guard?.to(hostname.replace(/^\[|\]$/g, ''), Number(port) || HTTPS_PORT)
  server?.check()
  const tls = { ca: ca() ?? trustedCAs(), ...(server !== undefined && { lookup: server.lookup }) }
  const reply = await fetchBounded(url, { headers: { accept: 'application/json' }, tls, signal })
  if (reply.code === 200) return reply.countedText(DOCUMENT, serverCharge(origin))
  reply.discard()
  throw new Error(`answers with ${reply.code}`)
}

function trustedCAs(): string[] {
  return [...getCACertificates('default'), ...getCACertificates('system')]
}
