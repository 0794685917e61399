// Sums the rows of several threads. Each row of a thread is mapped to a row here when first seen, permanently: a count shown under one name never
// moves to another, so that no counter decreases.

import { KINDS, RESOURCE, UPSTREAM } from './descriptors.ts'
import type { RowKind } from './metric.ts'
import { ROW_FIELDS, SeriesStore, type StoreSnapshot } from './series.ts'
import {
  MAX_RESOURCES,
  MAX_UNPROVEN_RESOURCES,
  OTHER,
  OTHER_CODE,
  PROVEN,
  RESOURCE_NAMES,
  UNPROVEN,
} from './series-limits.ts'

interface Source {
  readonly id: number
  /** The row here, by row there. */
  readonly rows: number[]
}

/** The same store of several threads. Row limits are those of one thread, over all of them. */
export class MergedStore {
  readonly #store: SeriesStore
  /** Counts of dead threads, at the same offsets as the sums. */
  #base = new Float64Array(0)
  readonly #sources = new Map<number, Source>()
  readonly #rows = new Map<string, number>()
  readonly #sizes: number[] = new Array(KINDS.length).fill(0)
  #resources = 0
  #unproven = 0

  constructor(cluster: string) {
    this.#store = new SeriesStore(cluster, 0)
  }

  /** Sums over the live and dead threads. */
  sum(snapshots: ReadonlyMap<number, StoreSnapshot>): StoreSnapshot {
    for (const [thread, snapshot] of snapshots) this.#adopt(thread, snapshot)
    const { values } = this.#store
    values.fill(0)
    values.set(this.#base)
    for (const [thread, snapshot] of snapshots) this.#addTo(values, thread, snapshot, false)
    return this.#store.snapshot()
  }

  /** Keeps the counters of a thread that has ended, and drops its gauges. */
  keep(thread: number, snapshot: StoreSnapshot): void {
    this.#adopt(thread, snapshot)
    const base = new Float64Array(this.#store.values.length)
    base.set(this.#base)
    this.#base = base
    this.#addTo(base, thread, snapshot, true)
    this.#sources.delete(thread)
  }

  #addTo(sums: Float64Array, thread: number, { rows, values }: StoreSnapshot, keptOnly: boolean): void {
    const targets = this.#sources.get(thread)?.rows ?? []
    for (let row = 0; row < targets.length; row++) {
      const at = row * ROW_FIELDS
      const kind = KINDS[rows[at] ?? 0]
      if (kind === undefined || (keptOnly && kind.merge !== 'kept')) continue
      const from = rows[at + 3] ?? 0
      const to = this.#store.offsetOf(targets[row] ?? 0)
      for (let i = 0; i < kind.width; i++) {
        sums[to + i] = (sums[to + i] ?? 0) + (values[from + i] ?? 0)
      }
    }
  }

  /** Maps new rows. */
  #adopt(thread: number, snapshot: StoreSnapshot): void {
    let source = this.#sources.get(thread)
    if (source === undefined || source.id !== snapshot.id) {
      source = { id: snapshot.id, rows: [] }
      this.#sources.set(thread, source)
    }
    const { rows: targets } = source
    for (let row = targets.length; row < snapshot.rows.length / ROW_FIELDS; row++) {
      const at = row * ROW_FIELDS
      const [id = 0, first = 0, second = 0] = snapshot.rows.subarray(at, at + 3)
      const kind = KINDS[id] ?? RESOURCE
      targets.push(
        kind === RESOURCE
          ? this.#resourceRow(snapshot.names.slice(first, first + RESOURCE_NAMES), second)
          : this.#row(snapshot.names, targets, kind, first, second),
      )
    }
  }

  #row(names: readonly string[], targets: readonly number[], kind: RowKind, first: number, second: number): number {
    if (kind.first !== 'name') return this.#add(kind, kind.first === 'row' ? (targets[first] ?? 0) : 0, second)
    const name = names[first] ?? ''
    const secondName = kind.second === 'name' ? (names[second] ?? '') : undefined
    const key = `${kind.id} ${name}\n${secondName ?? second}`
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const size = this.#sizes[kind.id] ?? 0
    if (size >= kind.limit) return this.#add(kind, this.#store.nameIndex('other'), this.#otherSecond(kind))
    this.#sizes[kind.id] = size + 1
    const row = this.#add(kind, this.#store.nameIndex(name), this.#second(secondName, second))
    this.#rows.set(key, row)
    return row
  }

  #second(name: string | undefined, number: number): number {
    return name === undefined ? number : this.#store.nameIndex(name)
  }

  #otherSecond(kind: RowKind): number {
    if (kind.second === 'name') return this.#store.nameIndex('other')
    return kind === UPSTREAM ? OTHER_CODE : 0
  }

  #resourceRow(names: readonly string[], standing: number): number {
    if (standing !== PROVEN && standing !== UNPROVEN) return this.#findResource(String(standing), names, standing)
    const key = names.join('\n')
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const full = this.#resources >= MAX_RESOURCES
    if (full || (standing === UNPROVEN && this.#unproven >= MAX_UNPROVEN_RESOURCES)) {
      return this.#findResource(String(OTHER), ['other', 'other', 'other', 'other'], OTHER)
    }
    this.#resources++
    if (standing === UNPROVEN) this.#unproven++
    return this.#findResource(key, names, standing)
  }

  #findResource(key: string, names: readonly string[], standing: number): number {
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const row = this.#store.addRow(RESOURCE, this.#store.addNames(names), standing)
    this.#rows.set(key, row)
    return row
  }

  /** The row with these numbers; created if absent. */
  #add(kind: RowKind, first: number, second: number): number {
    const key = `${kind.id} ${first} ${second}`
    const known = this.#rows.get(key)
    if (known !== undefined) return known
    const row = this.#store.addRow(kind, first, second)
    this.#rows.set(key, row)
    return row
  }
}
