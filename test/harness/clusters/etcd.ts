// etcd of a test cluster: it can be compacted, backed up and put back, and tells each change of each key.

import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Binaries } from '../binaries.ts'
import { withFreePorts } from '../ports.ts'
import { type RunningProcess, startProcess } from '../process.ts'

export interface TestEtcd {
  /** Without TLS and authentication. */
  readonly url: string
  readonly pid: number
  /** The newest revision, which is also the resourceVersion of the cluster's newest change. */
  revision(): Promise<number>
  /** Resolves with its revision. */
  put(key: string, value: string): Promise<number>
  remove(key: string): Promise<void>
  /** Forgets all changes up to this revision. */
  compact(revision: number): Promise<void>
  /** Copies what it has while it does not run, and starts it again. */
  backUp(): Promise<void>
  /** Goes back to the last backup, revision included; what was written since is gone. */
  restore(): Promise<void>
  stop(): Promise<void>
}

export function startEtcd(programs: Binaries, dir: string): Promise<TestEtcd> {
  return withFreePorts(2, async ([client, peer]) => {
    const url = `http://127.0.0.1:${client}`
    const dataDir = join(dir, `etcd-${client}`)
    const backup = `${dataDir}-backup`
    const start = (): Promise<RunningProcess> =>
      startProcess({
        name: 'etcd',
        command: programs.etcd,
        args: [
          `--data-dir=${dataDir}`,
          `--listen-client-urls=${url}`,
          `--advertise-client-urls=${url}`,
          `--listen-peer-urls=http://127.0.0.1:${peer}`,
          '--unsafe-no-fsync',
        ],
        logFile: join(dir, 'etcd.log'),
        ready: async () => (await fetch(`${url}/readyz`)).ok,
      })
    let running = await start()
    return {
      url,
      get pid() {
        return running.pid
      },
      async revision() {
        const answer = await etcdCall<Answer>(url, 'kv/range', { key: base64Of('/'), limit: '1' })
        return Number(answer.header.revision)
      },
      async put(key, value) {
        const answer = await etcdCall<Answer>(url, 'kv/put', { key: base64Of(key), value: base64Of(value) })
        return Number(answer.header.revision)
      },
      async remove(key) {
        await etcdCall(url, 'kv/deleterange', { key: base64Of(key) })
      },
      async compact(revision) {
        await etcdCall(url, 'kv/compaction', { revision: String(revision), physical: true })
      },
      async backUp() {
        await running.stop()
        copy(dataDir, backup)
        running = await start()
      },
      async restore() {
        await running.stop(0)
        copy(backup, dataDir)
        running = await start()
      },
      async stop() {
        await running.stop(0)
      },
    }
  })
}

interface Answer {
  readonly header: { readonly revision: string }
}

/** etcd's gRPC calls as JSON; keys and values are in base64. */
async function etcdCall<T>(url: string, call: string, body: object): Promise<T> {
  const response = await fetch(`${url}/v3/${call}`, { method: 'POST', body: JSON.stringify(body) })
  const text = await response.text()
  if (!response.ok) throw new Error(`etcd ${call}: ${text}`)
  return JSON.parse(text) as T
}

export function base64Of(text: string): string {
  return Buffer.from(text).toString('base64')
}

function copy(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true })
  cpSync(from, to, { recursive: true })
}
