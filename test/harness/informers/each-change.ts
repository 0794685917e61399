// Compares what informers have seen with what has happened in etcd.

import type { EtcdJournal } from '../clusters/etcd-journal.ts'
import type { SeenByInformer, Stretch } from './informers.ts'

/** No watch could have brought the changes behind `from`, up to `to`: no API server ran that knew of them. A new list has what came of them. */
export interface BlindSpan {
  /** As informers name it. Default: all resources. */
  readonly resource?: string
  readonly from: number
  readonly to: number
}

/** What is wrong; of many, the first few. */
export function notOnce(
  informers: readonly SeenByInformer[],
  journal: EtcdJournal,
  blind: readonly BlindSpan[] = [],
): readonly string[] {
  const wrong = informers.flatMap(({ resource, stretches, problems }) => {
    const happened = new Map(journal.of(resource).map((entry) => [entry.revision, entry.isDelete]))
    return [...problems, ...stretches.flatMap((stretch) => differences(resource, stretch, happened, blind))]
  })
  return wrong.slice(0, MOST_SHOWN)
}

const MOST_SHOWN = 10

function differences(
  resource: string,
  { from: first, to: last, events }: Stretch,
  happened: ReadonlyMap<number, boolean>,
  blind: readonly BlindSpan[],
): readonly string[] {
  const [from, to] = [Number(first), Number(last)]
  const spans = blind.filter((span) => span.resource === undefined || span.resource === resource)
  const isBlind = (revision: number): boolean => spans.some((span) => revision > span.from && revision <= span.to)
  const seen = new Set(events.map(({ version }) => Number(version)))
  const between = `${resource} between ${from} and ${to}`
  const lost = [...happened.keys()].filter((at) => at > from && at <= to && !seen.has(at) && !isBlind(at))
  const invented = events.filter(({ version: text, type }) => {
    const version = Number(text)
    const isDelete = happened.get(version)
    // What a new list lacks was deleted at a version that nothing tells. It is given one that the list does not have, which another change may have had.
    if ((type === 'DELETED' || type === 'any') && isBlind(version)) return false
    if (isDelete === undefined) return true
    return type !== 'any' && isDelete !== (type === 'DELETED')
  })
  return [
    ...lost.map((revision) => `${between}: ${revision} is lost`),
    ...invented.map(({ type, version, key }) => `${between}: ${type} of ${key} at ${version} has not happened`),
  ]
}

/** How many changes the informers had to see, one by one. */
export function changesSeen(informers: readonly SeenByInformer[]): number {
  return informers.reduce(
    (all, { stretches }) => all + stretches.reduce((sum, { events }) => sum + events.length, 0),
    0,
  )
}
