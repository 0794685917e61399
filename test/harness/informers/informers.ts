// client-go's reflectors as a process (test/harness/go/informers): what their watches bring, change by change.

import { readFileSync } from 'node:fs'
import { binaries } from '../binaries.ts'
import { type LineProgram, startLineProgram } from '../line-program.ts'

export interface InformerOptions {
  readonly kubeconfig: string
  /** `v1/pods`, `apps/v1/deployments`. */
  readonly resources: readonly string[]
  /** Default json. */
  readonly encoding?: 'json' | 'protobuf' | 'metadata'
  /** Informers of each resource, each on a connection of its own. Default 1. */
  readonly count?: number
  /** client-go lists once more after each initial state, and panics if it was another one. Default true. */
  readonly detector?: boolean
  /** The state comes by a watch, as since Kubernetes 1.35, and not by a list. Default true. */
  readonly watchList?: boolean
}

/** A decimal number of any length. */
export type Version = string

export interface InformerStats {
  readonly informers: number
  /** How many have had their state, and have a watch open. */
  readonly synced: number
  /** For each resource, the lowest of the versions up to which they know everything. */
  readonly oldest: Readonly<Record<string, Version>>
  /** How many changes all have had, initial states aside. */
  readonly events: number
  readonly lists: number
  readonly watches: number
  /** How often a watch had to begin with a new state: 410. */
  readonly expired: number
  /** Changes that came twice or out of order. */
  readonly problems: readonly string[]
}

/** An unbroken row of changes, from a state on. */
export interface Stretch {
  /** Version of the state. */
  readonly from: Version
  /** All changes up to this version have come. */
  readonly to: Version
  /** `type`: of the watch, or `any` if that is not known. */
  readonly events: readonly { readonly type: string; readonly version: Version; readonly key: string }[]
}

export interface SeenByInformer {
  readonly resource: string
  readonly stretches: readonly Stretch[]
  readonly problems: readonly string[]
  /** `namespace/name` -> uid and resourceVersion. */
  readonly store: Readonly<Record<string, string>>
}

export interface Informers extends LineProgram<InformerStats> {
  /** @param file that it may write */
  report(file: string): Promise<readonly SeenByInformer[]>
}

/** Resolves when they are ready to be started by the command `start`; `stats` tells how they are. */
export async function startInformers({
  kubeconfig,
  resources,
  encoding = 'json',
  count = 1,
  detector = true,
  watchList = true,
}: InformerOptions): Promise<Informers> {
  const { informers } = await binaries()
  const program = await startLineProgram<InformerStats>(
    'informers',
    informers,
    [`-kubeconfig=${kubeconfig}`, `-resources=${resources.join()}`, `-encoding=${encoding}`, `-count=${count}`],
    { KUBE_WATCHLIST_INCONSISTENCY_DETECTOR: String(detector), KUBE_FEATURE_WatchListClient: String(watchList) },
  )
  return {
    ...program,
    async report(file) {
      await program.command(`report ${file}`)
      return JSON.parse(readFileSync(file, 'utf8')) as readonly SeenByInformer[]
    },
  }
}
