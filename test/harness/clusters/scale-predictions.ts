// What is said beforehand about a scale-down, by `portcullis scale why` and by the Warnings of the write, and whether it came true.

import assert from 'node:assert/strict'
import { type ScaleWhyOptions, scaleWhy } from '../../../src/scaling/cli/why.ts'
import type { KubeResponse } from './kube-request.ts'

// biome-ignore lint/suspicious/noExplicitAny: as the command prints it
type Json = any

/** For so long it is said: which ages change places later is another question. */
const WINDOW_MS = 60_000

/** What is said about a scale-down: `count` of `possible` go beside those that are certain to; all others stay. */
export interface Said {
  readonly by: string
  readonly atMs: number
  readonly certain: readonly string[]
  readonly possible: readonly string[]
  readonly count: number
  /** Which of the possible ones, if the controller looks within so many seconds. */
  readonly soon: { readonly pods: readonly string[]; readonly seconds: number } | undefined
}

export interface Why {
  readonly said: Said
  /** What a ScaleDownPolicy chooses. */
  readonly chosen: readonly string[]
}

type Asked = Pick<ScaleWhyOptions, 'kubeconfig' | 'podKubeconfig' | 'cluster' | 'target' | 'replicas'>

const namesOf = (pods: Json[]): string[] => pods.map(({ name }) => name)

/** @param options whose kubeconfigs are asked */
export async function scaleWhySays(options: Asked): Promise<Why> {
  let text = ''
  let errors = ''
  const atMs = Date.now()
  const code = await scaleWhy({
    ...options,
    output: 'json',
    now: Date.now,
    out: (more) => {
      text += more
    },
    err: (more) => {
      errors += more
    },
  })
  assert.deepEqual([code, errors], [0, ''])
  const { sets, notes } = JSON.parse(text)
  const open: Json[] = sets.map(({ possible }: Json) => possible)
  const [, chosen = 'nothing'] = /^ScaleDownPolicy \S+ chooses (.*); a write/m.exec(notes.join('\n')) ?? []
  const said: Said = {
    by: 'scale why',
    atMs,
    certain: sets.flatMap(({ certain }: Json) => namesOf(certain)),
    possible: open.flatMap(({ pods }) => namesOf(pods)),
    count: open.reduce((all, { count }) => all + count, 0),
    soon: open.length === 1 ? open[0].soon : undefined,
  }
  return { said, chosen: chosen === 'nothing' ? [] : chosen.split(', ') }
}

/** What the Warning of the write itself says. */
export function warningSays({ headers }: KubeResponse, atMs: number): Said {
  const texts = [...String(headers['warning'] ?? '').matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(
    ([, text = '']) => text,
  )
  const said = { certain: [] as string[], possible: [] as string[], soon: [] as string[] }
  let [total, count, seconds] = [0, 0, 0]
  let into: string[] = []
  for (const text of texts) {
    const [, deletes, certain] = /replicas deletes (\d+) pods?(?:: (.*))?$/.exec(text) ?? []
    const [, open, possible] = /: (\d+) of these \d+ go: (.*)$/.exec(text) ?? []
    const [, within, soon] = /: if the controller looks within (\d+)s: (.*)$/.exec(text) ?? []
    const [, more] = /^and (.*)$/.exec(text) ?? []
    if (deletes !== undefined) total += Number(deletes)
    if (open !== undefined) count += Number(open)
    if (within !== undefined) seconds = Number(within)
    if (deletes !== undefined) into = said.certain
    if (open !== undefined) into = said.possible
    if (within !== undefined) into = said.soon
    // Names that do not fit into a Warning follow in the next one.
    const names = certain ?? possible ?? soon ?? more
    if (names !== undefined) into.push(...names.split(', '))
  }
  assert.equal(said.certain.length + count, total, texts.join('\n'))
  const soon = seconds === 0 ? undefined : { pods: said.soon, seconds }
  return { by: 'the Warning', atMs, certain: said.certain, possible: said.possible, count, soon }
}

/** No pod that was said to stay is gone, and each that was certain to go is. */
export function assertTrue(
  what: string,
  { by, atMs, certain, possible, count, soon }: Said,
  gone: readonly string[],
): void {
  const lateMs = Date.now() - atMs
  if (lateMs > WINDOW_MS) return
  const told = `${what}: ${by} said ${certain.join()} and ${count} of ${possible.join()}; gone are ${gone.join()}`
  for (const name of gone) assert.ok(certain.includes(name) || possible.includes(name), `${name} was to stay; ${told}`)
  for (const name of certain) assert.ok(gone.includes(name), `${name} was certain to go; ${told}`)
  assert.equal(gone.length, certain.length + count, told)
  if (soon === undefined || lateMs > soon.seconds * 1000) return
  const open = gone.filter((name) => possible.includes(name))
  assert.deepEqual(new Set(open), new Set(soon.pods), `within ${soon.seconds}s; ${told}`)
}
