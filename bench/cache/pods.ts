// Pods of a real cluster: as many as a measurement wants, and changes of them.

import { Pool } from 'undici'
import type { TestCluster } from '../../test/harness/clusters/cluster.ts'

const NAMESPACE = 'bench'
const CREATED_AT_ONCE = 16

export class BenchPods {
  readonly #api: Pool
  readonly #podBytes: number
  #pods = 0
  #writes = 0

  /** @param podBytes about the size of a pod as JSON */
  constructor({ admin, ca, apiservers }: TestCluster, podBytes: number) {
    const { certPem: cert, keyPem: key } = admin.cert
    const connect = { ca: ca.certPem, cert, key }
    this.#api = new Pool(apiservers[0]?.url ?? '', { connect, connections: CREATED_AT_ONCE })
    this.#podBytes = podBytes
  }

  get count(): number {
    return this.#pods
  }

  async createNamespace(): Promise<void> {
    const metadata = { name: NAMESPACE }
    await this.#call('POST', '/api/v1/namespaces', { metadata })
    await this.#call('POST', `/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, { metadata: { name: 'default' } })
  }

  /** Adds pods until there are so many. */
  async grow(pods: number): Promise<void> {
    if (this.#pods >= pods) return
    const path = `/api/v1/namespaces/${NAMESPACE}/pods`
    const least = (await this.#call('POST', path, podObject(this.#pods++, 0))).length
    const filling = Math.max(0, this.#podBytes - least)
    const create = async (): Promise<void> => {
      while (this.#pods < pods) await this.#call('POST', path, podObject(this.#pods++, filling))
    }
    await Promise.all(Array.from({ length: CREATED_AT_ONCE }, create))
  }

  /** Changes one pod. @param at its number @returns its new version */
  async write(at = 0): Promise<string> {
    const body = { metadata: { annotations: { write: String(++this.#writes) } } }
    const headers = { 'content-type': 'application/merge-patch+json' }
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${podName(at % this.#pods)}`
    const text = await this.#call('PATCH', path, body, headers)
    return (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion
  }

  /** The list of all pods. */
  async list(): Promise<Buffer> {
    const { body } = await this.#api.request({ method: 'GET', path: '/api/v1/pods?resourceVersion=0' })
    return Buffer.from(await body.arrayBuffer())
  }

  async close(): Promise<void> {
    await this.#api.destroy()
  }

  async #call(
    method: 'POST' | 'PATCH',
    path: string,
    object: object,
    headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
  ): Promise<string> {
    const { statusCode, body } = await this.#api.request({ method, path, headers, body: JSON.stringify(object) })
    const text = await body.text()
    if (statusCode >= 300) throw new Error(`${method} ${path}: ${statusCode} ${text}`)
    return text
  }
}

function podName(at: number): string {
  return `pod-${String(at).padStart(6, '0')}`
}

function podObject(at: number, filling: number): object {
  const app = `app-${at % 100}`
  return {
    metadata: {
      name: podName(at),
      labels: { app, 'pod-template-hash': `hash-${at % 100}` },
      annotations: { filling: 'x'.repeat(filling) },
    },
    spec: { nodeName: `node-${at % 1000}`, containers: [{ name: 'c', image: `registry.example.com/${app}:v1` }] },
  }
}
