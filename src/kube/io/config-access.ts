// Current server and credentials of an API server: credentials expire, are rotated on disk, and come from plugins, which @kubernetes/client-node
// runs.

import type { RequestOptions } from 'node:https'
import type { KubeConfig } from '@kubernetes/client-node'
import type { DialGuard } from '../../kit/io/dial/dial-guard.ts'
import { type KubeConfigOptions, loadKubeConfig } from './config.ts'

/** Everything needed to connect and send requests. */
export interface KubeAccess {
  /** `https://host:port`, with a path if the cluster is served below one. */
  readonly server: string
  /** '' = none. */
  readonly proxyUrl: string
  readonly tls: {
    readonly ca: string
    readonly cert: string
    readonly key: string
    /** SNI, and the name to verify; '' = the host of `server`. */
    readonly serverName: string
    readonly insecure: boolean
  }
  /** Checks the server's address if an object names it. Absent: the operator names it. */
  readonly guard?: DialGuard
  /** authorization, impersonate-user. */
  readonly headers: Readonly<Record<string, string>>
}

/** How long credentials are reused before client-node is asked again: it reads files, and a plugin's credential may expire. */
const KEEP_MS = 10_000
/** A hanging plugin must not block all requests forever. */
const PLUGIN_TIMEOUT_MS = 30_000

/** Credentials that stay current: rotated files, expiring tokens, a replaced kubeconfig. */
export class KubeCredentials {
  readonly server: string
  readonly #options: KubeConfigOptions
  #config: KubeConfig
  #reading: Promise<KubeAccess> | undefined
  #readAt = 0
  #renewedAt = Number.NEGATIVE_INFINITY

  /** @throws {UserError} */
  constructor(options: KubeConfigOptions) {
    this.#options = options
    this.#config = loadKubeConfig(options)
    this.server = this.#config.getCurrentCluster()?.server ?? ''
  }

  /** @throws (rejects) an Error for people if files cannot be read or a plugin fails */
  access(): Promise<KubeAccess> {
    const now = performance.now()
    if (this.#reading !== undefined && now - this.#readAt < KEEP_MS) return this.#reading
    this.#readAt = now
    const reading = readAccess(this.#config)
    this.#reading = reading
    // A failure is not cached; the caller gets the error.
    reading.catch(() => {
      if (this.#reading === reading) this.#reading = undefined
    })
    return reading
  }

  /** After a 401: drops the cache. False if that was done a moment ago: it would not help. */
  renew(): boolean {
    const now = performance.now()
    if (now - this.#renewedAt < KEEP_MS) return false
    this.#renewedAt = now
    try {
      this.#config = loadKubeConfig(this.#options)
    } catch {
      // It is just being written: the previous one may still work.
    }
    this.#reading = undefined
    return true
  }
}

async function readAccess(config: KubeConfig): Promise<KubeAccess> {
  const cluster = config.getCurrentCluster()
  const options: RequestOptions = {}
  let late: NodeJS.Timeout | undefined
  try {
    const deadline = new Promise<never>((_, reject) => {
      late = setTimeout(() => reject(new Error(`no answer within ${PLUGIN_TIMEOUT_MS / 1000} s`)), PLUGIN_TIMEOUT_MS)
    })
    await Promise.race([config.applyToHTTPSOptions(options), deadline])
  } catch (error) {
    throw new Error(`the credentials in the kubeconfig cannot be used: ${credentialFault(error)}`)
  } finally {
    clearTimeout(late)
  }
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // Token files end with a line break.
    if (value !== undefined) headers[name.toLowerCase()] = String(value).trim()
  }
  if (typeof options.auth === 'string' && headers['authorization'] === undefined) {
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
  }
  return {
    server: cluster?.server ?? '',
    proxyUrl: cluster?.proxyUrl ?? '',
    tls: {
      ca: textOf(options.ca),
      cert: textOf(options.cert),
      key: textOf(options.key),
      serverName: options.servername ?? '',
      insecure: options.rejectUnauthorized === false,
    },
    headers,
  }
}

function textOf(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('latin1')
  return typeof value === 'string' ? value : ''
}

/** Never includes a plugin's stdout: that is the credential. */
function credentialFault(error: unknown): string {
  if (error instanceof SyntaxError || error instanceof TypeError) return 'the plugin printed no ExecCredential'
  if (!(error instanceof Error)) return 'the plugin failed'
  if ('code' in error && error.code === 'ENOENT' && 'path' in error) return `${String(error.path)} does not exist`
  const [line = ''] = error.message.trim().split('\n')
  return line === '' ? 'the plugin failed and printed nothing' : line.slice(0, 200)
}
