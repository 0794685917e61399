// What a command is going to do to many clusters, as text: shown before anything is written.

import { listed } from '../../gateway/core/choice/choose-clusters.ts'
import { printable } from '../../kit/core/text/printable.ts'
import { textTable } from '../../kit/core/text/text-table.ts'

/** A cluster that is going to be changed. */
export interface PlannedChange {
  readonly name: string
  /** Their states in words: `Off`, `ReadOnly`. */
  readonly from: string
  readonly to: string
  /** What to know about it; '' = nothing. */
  readonly note: string
}

/** A cluster that stays as it is. */
export interface LeftOut {
  readonly name: string
  readonly why: string
}

export interface ChangePlan<T extends PlannedChange> {
  /** What is done, in words: `degrade mode ReadOnly until ...`. */
  readonly title: string
  readonly changes: readonly T[]
  /** Nothing has to be changed there. */
  readonly unchanged: readonly LeftOut[]
  /** The caller or a guard rail forbids it. */
  readonly stopped: readonly LeftOut[]
}

/** @param known how many UpstreamClusters there are; undefined = unknown */
export function planText<T extends PlannedChange>(plan: ChangePlan<T>, known: number | undefined): string {
  const { title, changes, unchanged, stopped } = plan
  const chosen = changes.length + unchanged.length + stopped.length
  const of = known === undefined || known === chosen ? '' : ` of ${known}`
  const whole = known !== undefined && known === chosen ? ' (all there are)' : ''
  const rows = grouped(changes, ({ from, to }) => `${from}\n${to}`).map(([key, names]) => {
    const [from = '', to = ''] = key.split('\n')
    return [from, to, String(names.length), listed(names)]
  })
  const table = rows.length === 0 ? '' : textTable([['FROM', 'TO', 'CLUSTERS', 'NAMES'], ...rows], '  ')
  const notes = changes.filter(({ note }) => note !== '').map(({ name, note }) => ({ name, why: note }))
  return [
    `plan: ${title}: ${chosen}${of} UpstreamCluster${chosen === 1 ? '' : 's'}${whole}, ${changes.length} to change\n`,
    table,
    section('note', notes),
    section('unchanged', unchanged),
    section('stopped', stopped),
  ].join('')
}

/** `  unchanged: eu-1, eu-2: ReadOnly already` */
function section(head: string, members: readonly LeftOut[]): string {
  return reasonLines(members)
    .map((line) => `  ${head}: ${line}\n`)
    .join('')
}

/** Reasons that are listed at most: they may all be different. */
const MOST_LINES = 20

/** One line for all that have the same reason. Operators and servers write reasons: this goes to a terminal. */
export function reasonLines(members: readonly LeftOut[]): readonly string[] {
  const groups = grouped(members, ({ why }) => why)
  const lines = groups.slice(0, MOST_LINES).map(([why, names]) => `${listed(names)}: ${printable(why)}`)
  const rest = groups.slice(MOST_LINES).flatMap(([, names]) => names)
  return rest.length === 0 ? lines : [...lines, `${listed(rest)}: for other reasons; name one to see its own`]
}

/** The same for reasons by name. */
export function faultLines(faults: ReadonlyMap<string, string>): readonly string[] {
  return reasonLines([...faults].map(([name, why]) => ({ name, why })))
}

export function grouped<T extends { readonly name: string }>(
  members: readonly T[],
  keyOf: (member: T) => string,
): readonly (readonly [string, readonly string[]])[] {
  const groups = new Map<string, string[]>()
  for (const member of members) {
    const names = groups.get(keyOf(member)) ?? []
    names.push(member.name)
    groups.set(keyOf(member), names)
  }
  return [...groups]
}
