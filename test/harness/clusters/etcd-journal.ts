// Every change of a cluster's objects, as etcd has written it down: what watches have to bring, whichever way.

import { base64Of, type TestEtcd } from './etcd.ts'

export interface JournalEntry {
  /** The resourceVersion of the change. */
  readonly revision: number
  /** `/registry/pods/default/a` */
  readonly key: string
  readonly isDelete: boolean
}

interface WatchLine {
  readonly result?: {
    readonly canceled?: boolean
    readonly cancel_reason?: string
    readonly events?: readonly {
      readonly type?: 'DELETE'
      readonly kv: { readonly key: string; readonly mod_revision: string }
    }[]
  }
}

/** Resources whose keys do not begin with their plural. */
const FOLDERS: Readonly<Record<string, string>> = {
  nodes: 'minions',
  services: 'services/specs',
  endpoints: 'services/endpoints',
  ingresses: 'ingress',
}
const SENTINEL = '/journal-sentinel'

export class EtcdJournal {
  readonly entries: JournalEntry[] = []
  readonly #etcd: TestEtcd
  readonly #end = new AbortController()
  #sentinels = 0
  #failure: Error | undefined
  #wake: () => void = () => undefined

  private constructor(etcd: TestEtcd) {
    this.#etcd = etcd
  }

  /** Has every change behind this moment. */
  static async start(etcd: TestEtcd): Promise<EtcdJournal> {
    const journal = new EtcdJournal(etcd)
    const body = { create_request: { key: base64Of('/'), range_end: base64Of('0') } }
    const response = await fetch(`${etcd.url}/v3/watch`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: journal.#end.signal,
    })
    if (!response.ok || response.body === null) throw new Error(`etcd refuses a watch: ${response.status}`)
    void journal.#read(response.body)
    await journal.upToNow()
    return journal
  }

  /** Resolves when all changes before this call are there. */
  async upToNow(): Promise<void> {
    const value = String(++this.#sentinels)
    const revision = await this.#etcd.put(SENTINEL, value)
    while (!this.entries.some((entry) => entry.revision >= revision)) {
      if (this.#failure !== undefined) throw this.#failure
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
  }

  /** Changes of all objects of a resource, in order, with `namespace/name`. `resource` may have its group and version in front. */
  of(resource: string): readonly (JournalEntry & { readonly name: string })[] {
    const plural = resource.slice(resource.lastIndexOf('/') + 1)
    const folder = `/registry/${FOLDERS[plural] ?? plural}/`
    return this.entries
      .filter(({ key }) => key.startsWith(folder))
      .map((entry) => ({ ...entry, name: entry.key.slice(folder.length) }))
  }

  /** What there is of a resource: the version of each `namespace/name`, of all that were written since it was started. */
  stateOf(resource: string): ReadonlyMap<string, JournalEntry> {
    const state = new Map<string, JournalEntry>()
    for (const entry of this.of(resource)) {
      if (entry.isDelete) state.delete(entry.name)
      else state.set(entry.name, entry)
    }
    return state
  }

  stop(): void {
    this.#end.abort()
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder()
    let rest = ''
    try {
      for await (const chunk of body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) this.#take(JSON.parse(line) as WatchLine)
        this.#wake()
      }
      this.#failure = new Error('etcd ended the watch of the journal')
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
    }
    this.#wake()
  }

  #take({ result }: WatchLine): void {
    if (result?.canceled === true) throw new Error(`etcd ended the watch of the journal: ${result.cancel_reason}`)
    for (const { type, kv } of result?.events ?? []) {
      this.entries.push({
        revision: Number(kv.mod_revision),
        key: Buffer.from(kv.key, 'base64').toString(),
        isDelete: type === 'DELETE',
      })
    }
  }
}
