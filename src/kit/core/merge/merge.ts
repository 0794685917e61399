// Declarative merging of reports from several replicas: a shape has one rule per field.

import { short } from '../text/figures.ts'

/** With the name of the replica that says so. */
export interface PartOf<T> {
  readonly replica: string
  readonly part: T
}

/** Values with the replica that reported them, starting with the one that was asked. */
export type Parts<T> = readonly [PartOf<T>, ...PartOf<T>[]]

/**
 * @param values of the field; undefined if the parts have no such field
 * @param parts that contain the field
 */
type MergeRule<P, V, R> = (values: Parts<V>, parts: Parts<P>) => R

export type Shape<P, R> = { readonly [K in keyof R]: MergeRule<P, K extends keyof P ? P[K] : undefined, R[K]> }

export function merge<P extends object, R>(shape: Shape<P, R>, parts: Parts<P>): R {
  const rules: [string, MergeRule<P, unknown, unknown>][] = Object.entries(shape)
  const merged = rules.map(([field, rule]) => [
    field,
    rule(
      each(parts, (part) => Reflect.get(part, field)),
      parts,
    ),
  ])
  return Object.fromEntries(merged) as R
}

/** Lists of rows: merges rows with the same key, in order of first appearance. */
export function rows<T, R>(
  key: readonly (keyof T)[],
  mergeSame: (same: Parts<T>, lists: Parts<readonly T[]>) => R,
): (lists: Parts<readonly T[]>) => readonly R[] {
  return (lists) => {
    const all = lists.flatMap(({ replica, part }) => part.map((row) => ({ replica, part: row })))
    const groups = Map.groupBy(all, ({ part }) => JSON.stringify(key.map((field) => part[field])))
    return [...groups.values()].flatMap((same) => (isSome(same) ? [mergeSame(same, lists)] : []))
  }
}

/** Lists of rows without duplicates. */
export function distinct<T>(...key: readonly (keyof T)[]): (lists: Parts<readonly T[]>) => readonly T[] {
  return rows(key, first)
}

export function first<T>([{ part }]: Parts<T>): T {
  return part
}

export function sum(values: Parts<number>): number {
  return values.reduce((all, { part }) => all + part, 0)
}

export function sumOfField<F extends string>(parts: Parts<Readonly<Record<F, number>>>, field: F): number {
  return parts.reduce((all, { part }) => all + part[field], 0)
}

/** The sum of rates, rounded. */
export function rate(values: Parts<number>): number {
  return short(sum(values))
}

export function max(values: Parts<number>): number {
  return Math.max(...values.map(({ part }) => part))
}

/** The first non-empty text. */
export function said(values: Parts<string>): string {
  return values.find(({ part }) => part !== '')?.part ?? ''
}

/** The part with the lowest rank, the first among equals. */
export function worst<T>(parts: Parts<T>, rank: (part: T) => number): PartOf<T> {
  return parts.reduce((found, one) => (rank(one.part) < rank(found.part) ? one : found))
}

/** Sums of time series, aligned at their newest values, which come last. */
export function lines(values: Parts<readonly number[]>): readonly number[] {
  if (values.length === 1) return first(values)
  const length = Math.max(...values.map(({ part }) => part.length))
  return Array.from({ length }, (_, i) =>
    short(values.reduce((all, { part }) => all + (part[part.length - length + i] ?? 0), 0)),
  )
}

export function isSome<T>(parts: readonly PartOf<T>[]): parts is Parts<T> {
  return parts.length > 0
}

/** Extracts the same value from each part. */
export function each<T, V>([asked, ...others]: Parts<T>, of: (part: T) => V): Parts<V> {
  const ofOne = ({ replica, part }: PartOf<T>): PartOf<V> => ({ replica, part: of(part) })
  return [ofOne(asked), ...others.map(ofOne)]
}
