// Plain HTTPS requests to the embedded API server, and a reader of watches.

import { Agent, type RequestOptions, request } from 'node:https'
import type { KeyPair } from '../../../src/pki/io/pki.ts'
import type { TestControl } from '../gateways/control.ts'
import { waitFor } from '../wait.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape, and fail when these are others
export type Json = any

export interface ControlResponse {
  readonly code: number
  /** Lower-case names; lists as Node gives them. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
  /** undefined when the body is not JSON. */
  readonly json: Json
}

export interface CallOptions {
  /** A string goes as it is, anything else as JSON. */
  readonly body?: unknown
  readonly contentType?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface OpenWatch {
  readonly code: number
  /** All events so far. */
  readonly events: Json[]
  readonly ended: boolean
  /** Resolves with the events once there are so many. */
  count(events: number): Promise<Json[]>
  /** Resolves with the events once the stream has ended. */
  end(): Promise<Json[]>
  /** Reads no more, or goes on. */
  pause(): void
  resume(): void
  close(): void
}

export class ControlClient {
  readonly #control: TestControl
  readonly #agent: Agent
  readonly #headers: Readonly<Record<string, string>>

  constructor(control: TestControl, user: { readonly cert?: KeyPair; readonly token?: string } = {}) {
    this.#control = control
    const { cert, token } = user
    this.#agent = new Agent({
      ca: control.caPem,
      keepAlive: true,
      ...(cert !== undefined && { cert: cert.certPem, key: cert.keyPem }),
    })
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  }

  call(method: string, path: string, options: CallOptions = {}): Promise<ControlResponse> {
    const { body, contentType = 'application/json' } = options
    const payload = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
    return new Promise((resolve, reject) => {
      const sent = request(
        this.#options(method, path, {
          // Node says no length of the body of a DELETE by itself.
          ...(payload !== undefined && {
            'content-type': contentType,
            'content-length': String(Buffer.byteLength(payload)),
          }),
          ...options.headers,
        }),
        (answer) => {
          const chunks: Buffer[] = []
          answer.on('data', (chunk: Buffer) => chunks.push(chunk))
          answer.on('error', reject)
          answer.on('end', () => {
            const text = Buffer.concat(chunks).toString()
            resolve({ code: answer.statusCode ?? 0, headers: answer.headers, text, json: parsed(text) })
          })
        },
      )
      sent.on('error', reject)
      sent.end(payload)
    })
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<ControlResponse> {
    return this.call('GET', path, { headers })
  }

  post(path: string, body: unknown): Promise<ControlResponse> {
    return this.call('POST', path, { body })
  }

  put(path: string, body: unknown): Promise<ControlResponse> {
    return this.call('PUT', path, { body })
  }

  delete(path: string, body?: unknown): Promise<ControlResponse> {
    return this.call('DELETE', path, { body })
  }

  mergePatch(path: string, body: unknown): Promise<ControlResponse> {
    return this.call('PATCH', path, { body, contentType: 'application/merge-patch+json' })
  }

  apply(path: string, body: unknown): Promise<ControlResponse> {
    return this.call('PATCH', path, { body, contentType: 'application/apply-patch+yaml' })
  }

  watch(path: string, headers: Readonly<Record<string, string>> = {}): Promise<OpenWatch> {
    return new Promise((resolve, reject) => {
      const sent = request(this.#options('GET', path, headers), (answer) => {
        const events: Json[] = []
        let rest = ''
        let ended = false
        answer.setEncoding('utf8')
        answer.on('data', (text: string) => {
          const lines = (rest + text).split('\n')
          rest = lines.pop() ?? ''
          events.push(...lines.map((line) => JSON.parse(line)))
        })
        answer.on('error', () => undefined)
        answer.on('close', () => {
          ended = true
        })
        resolve({
          code: answer.statusCode ?? 0,
          events,
          get ended() {
            return ended
          },
          count: (wanted) =>
            waitFor(`${wanted} events of ${path}`, () => (events.length >= wanted ? events : undefined)),
          end: () => waitFor(`the end of ${path}`, () => (ended ? events : undefined)),
          pause: () => void answer.pause(),
          resume: () => void answer.resume(),
          close: () => void sent.destroy(),
        })
      })
      sent.on('error', reject)
      sent.end()
    })
  }

  close(): void {
    this.#agent.destroy()
  }

  #options(method: string, path: string, headers: Readonly<Record<string, string>>): RequestOptions {
    const { port } = this.#control
    return { host: '127.0.0.1', port, method, path, agent: this.#agent, headers: { ...this.#headers, ...headers } }
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const UC = '/apis/proxy.kubegateway.io/v1alpha1/upstreamclusters'
export const PPR = '/apis/podseidon.kubewharf.io/v1alpha1'

/** A valid UpstreamCluster. */
export function cluster(name: string, spec: object = {}, metadata: object = {}): Json {
  return {
    apiVersion: 'proxy.kubegateway.io/v1alpha1',
    kind: 'UpstreamCluster',
    metadata: { name, ...metadata },
    spec: {
      servers: [{ endpoint: 'https://10.0.0.1:6443' }],
      clientConfig: { bearerToken: Buffer.from('token').toString('base64'), insecure: true },
      dispatchPolicies: [{ rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] }],
      ...spec,
    },
  }
}

export function secret(name: string, fields: object = {}, metadata: object = {}): Json {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name, ...metadata }, ...fields }
}
