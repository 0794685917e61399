// What the writer says on stdout, one JSON value a line: each line is written before, or after, the thing itself has happened.

import { createHash } from 'node:crypto'
import type { StoreEvent, StoreWrite } from '../../src/apiserver/api/object-store.ts'

export type JournalLine =
  | { readonly kind: 'open'; readonly revision: number }
  /** A write that may, or may not, be there later. */
  | { readonly kind: 'try'; readonly writes: readonly StoreWrite[] }
  /** A watcher of the resource heard of it. */
  | { readonly kind: 'event'; readonly resource: string; readonly revision: number; readonly digest: string }
  /** The acknowledgement: must be there from now on. */
  | { readonly kind: 'done'; readonly revisions: readonly number[] }
  /** A conflict: must not be there. */
  | { readonly kind: 'refused' }

/** How a writer is started: its one argument, as JSON. */
export interface WriterOrder {
  readonly file: string
  /** 64 hexadecimal digits. */
  readonly key: string
  readonly seed: number
  readonly round: number
  readonly historyRevisions: number
  /** Ends by itself after so many. Default: never. */
  readonly writes?: number
  /** Watch these resources from these revisions. */
  readonly watch: Readonly<Record<string, number>>
}

export const RESOURCES = ['secrets', 'upstreamclusters.proxy.kubegateway.io', 'leases.coordination.k8s.io'] as const

/** A digest of everything that an event says. */
export function digestOf({
  type,
  namespace,
  name,
  object,
  previous,
}: Omit<StoreEvent, 'resource' | 'revision'>): string {
  const text = JSON.stringify([type, namespace, name, object, previous ?? null])
  return createHash('sha256').update(text).digest('hex').slice(0, 24)
}

/** Lines that are complete: what a killed process had not finished to say, it has not said. */
export function parseJournal(text: string): JournalLine[] {
  const complete = text.slice(0, text.lastIndexOf('\n') + 1)
  return complete
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}
