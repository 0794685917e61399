// What a run prints: a Markdown table for each row as soon as it is measured, then every goal with its result; and the
// same as JSON.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'

/** A line of bench/budget.json. */
export interface Goal {
  readonly id: string
  /** The name of the row that measures it: what `--only` takes. */
  readonly row: string
  readonly what: string
  readonly unit: string
  readonly max?: number
  readonly min?: number
}

interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly lines: readonly (readonly (string | number)[])[]
}

const BUDGET = join(import.meta.dirname, '../budget.json')

export class Report {
  readonly goals: readonly Goal[] = (JSON.parse(readFileSync(BUDGET, 'utf8')) as { goals: Goal[] }).goals
  readonly #results = new Map<string, number>()
  readonly #tables: Table[] = []
  readonly #notes: string[] = []

  /** Says it at once. */
  table(title: string, head: readonly string[], lines: readonly (readonly (string | number)[])[]): void {
    this.#tables.push({ title, head, lines })
    const all = [head, head.map(() => '---'), ...lines]
    this.#say(`\n${title}\n\n${all.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`)
  }

  /** Something that the reader of the numbers has to know, e.g. why one is missing. */
  note(text: string): void {
    this.#notes.push(text)
    this.#say(`\n${text}\n`)
  }

  /** Throws for a goal that bench/budget.json does not have. */
  result(id: string, value: number): void {
    if (!this.goals.some((goal) => goal.id === id)) throw new Error(`no goal ${id} in bench/budget.json`)
    if (!Number.isNaN(value)) this.#results.set(id, value)
  }

  /** The goals of these rows, met or not; writes everything as JSON to `file`. */
  finish(rows: readonly string[], file: string, about: object): void {
    const goals = this.goals
      .filter((goal) => rows.includes(goal.row))
      .map((goal) => ({
        ...goal,
        result: this.#results.get(goal.id),
        verdict: verdict(goal, this.#results.get(goal.id)),
      }))
    const lines = goals.map((goal) => [goal.what, limit(goal), format(goal.result, goal.unit), goal.verdict])
    this.#say(
      `\n${[['what', 'goal', 'result', ''], ['---', '---', '---', '---'], ...lines].map((c) => `| ${c.join(' | ')} |`).join('\n')}\n`,
    )
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, `${JSON.stringify({ ...about, goals, tables: this.#tables, notes: this.#notes }, null, 2)}\n`)
  }

  #say(text: string): void {
    process.stdout.write(text)
  }
}

function verdict(goal: Goal, result: number | undefined): string {
  if (result === undefined) return 'not measured'
  return result <= (goal.max ?? Number.POSITIVE_INFINITY) && result >= (goal.min ?? Number.NEGATIVE_INFINITY)
    ? 'met'
    : 'MISSED'
}

function limit(goal: Goal): string {
  return goal.max === undefined ? `>= ${goal.min} ${goal.unit}` : `<= ${goal.max} ${goal.unit}`
}

function format(value: number | undefined, unit: string): string {
  return value === undefined ? '-' : `${value.toFixed(2)} ${unit}`
}
