// Numbers of a measurement as they are printed: tables in Markdown, and goals with what became of them.

import process from 'node:process'

const MIB = 1024 * 1024

export function table(rows: readonly (readonly string[])[]): void {
  const [head = [], ...rest] = rows
  for (const cells of [head, head.map(() => '---'), ...rest]) process.stdout.write(`| ${cells.join(' | ')} |\n`)
}

/** What was measured, the result, and the most that it may be. A result that is no number is missing. */
export type GoalRow = readonly [what: string, result: number, goal: number]

export function goalsTable(rows: readonly GoalRow[]): void {
  const format = (value: number): string => (Number.isNaN(value) ? '-' : value.toFixed(value < 0.1 ? 3 : 2))
  const verdict = (value: number, goal: number): string => (value <= goal ? 'met' : 'MISSED')
  process.stdout.write('\n')
  table([
    ['what', 'goal', 'result', ''],
    ...rows.map(([what, value, goal]) => {
      return [what, `<= ${format(goal)}`, format(value), Number.isNaN(value) ? '' : verdict(value, goal)]
    }),
  ])
}

export const ratio = (one: number | undefined, other: number | undefined): number =>
  (one ?? Number.NaN) / (other ?? Number.NaN)

export function median(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? Number.NaN
}

export const milliseconds = (value: number): string => `${value.toFixed(1)} ms`
export const cpuTime = (seconds: number): string =>
  seconds < 1 ? `${(seconds * 1000).toFixed(1)} ms` : `${seconds.toFixed(2)} s`
export const mebibytes = (bytes: number): string => `${(bytes / MIB).toFixed(0)} MiB`
