// No regular expression of the code backtracks: each is tried on texts that are made of its own characters.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const TOP = join(import.meta.dirname, '../..')
const sources = globSync('src/**/*.ts', { cwd: TOP })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => ({ file, text: readFileSync(join(TOP, file), 'utf8') }))

/** A literal behind something that an expression can follow; comments and texts with slashes are none. */
const LITERAL =
  /(?:^|[(,=:[!&|?{};+>]|\breturn|\bof)\s*\/((?![*/])(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)(?=[\s.,;)\]}]|$)/gm

interface Expression {
  readonly file: string
  readonly source: string
  readonly flags: string
}

const expressions: readonly Expression[] = sources.flatMap(({ file, text }) =>
  [...text.matchAll(LITERAL)].flatMap(([, source = '', flags = '']) => {
    try {
      new RegExp(source, flags)
      return [{ file, source, flags: flags.replace('g', '') }]
    } catch {
      return []
    }
  }),
)

/** Files with expressions that take the square of a long text: how many, and why none of their texts is long. */
const BOUNDED: Readonly<Record<string, readonly [expressions: number, reason: string]>> = {
  'src/scale-up-guard/api/scale-up-guard-kind.ts': [
    1,
    'a duration that matches the pattern of the whole text, which is linear',
  ],
  'src/gateway/api/upstream-cluster/auto-degrade.ts': [
    1,
    'a duration that matches the pattern of the whole: 28 characters',
  ],
  'src/traces/app/tracing.ts': [1, "the operator's flag"],
  'src/cli/import/kubeconfig.ts': [2, 'a process of its own, of the user who starts it'],
  'src/protection/cli/install.ts': [1, 'a process of its own, of the user who starts it'],
  'src/protection/cli/pod.ts': [1, 'a process of its own, of the user who starts it'],
  'src/kube/controllers/events/event-recorder.ts': [1, 'a name of at most 253 characters'],
}

/** Each long enough to see it (exponential growth at once), and short enough that nothing hangs. */
const LENGTHS = [24, 200, 2_000, 16_000]
/** Nanoseconds for each character: a pass over a text takes a few, a square at these lengths hundreds. */
const MOST_NS = 60
/** Less is noise. */
const LEAST_NS = 100_000
const LOOKS = 5
const ENDS = ['', '\n', '!', 'a']

/** Characters of the expression, and one of each kind that its classes may mean; alone, and two after each other. */
function pumps(source: string): string[] {
  const own = [...source.replace(/\\[a-zA-Z]|[[\](){}*+?^$|\\]/g, '')]
  const kinds = ['a', 'A', '0', ' ', '-', '.', '/', ':', '"', ',', '=', '%', '\t', '\\', '@', '_']
  const characters = [...new Set([...own, ...kinds])].slice(0, 30)
  const words = source.match(/[A-Za-z]{2,}/g) ?? []
  const pairs = own.slice(0, 8).flatMap((first) => own.slice(0, 8).map((second) => first + second))
  return [...new Set([...characters, ...pairs, ...words.slice(0, 5)])]
}

test('no regular expression backtracks over what it has seen', () => {
  assert.ok(expressions.length > 150, `${expressions.length} were found`)
  const slow = expressions.flatMap(({ file, source, flags }) => {
    const input = slowInput(new RegExp(source, flags))
    return input === undefined ? [] : [{ file, told: `/${source}/ on ${input}` }]
  })
  const found = Map.groupBy(slow, ({ file }) => file)
  for (const [file, all] of found)
    assert.equal(all.length, BOUNDED[file]?.[0] ?? 0, `${file}: ${all.map(({ told }) => told)}`)
  assert.deepEqual([...found.keys()].sort(), Object.keys(BOUNDED).sort())
})

test('one that backtracks is found', () => {
  const slow = [/\s+$/, /,.*,.*;/, /[a-z]+@/, /^begin(-+)*end/, /^\/(\w+\/?)*$/]
  for (const expression of slow) assert.ok(slowInput(expression), String(expression))
})

function slowInput(expression: RegExp): string | undefined {
  for (const start of new Set(['', fixedStart(expression.source)])) {
    for (const pump of pumps(expression.source)) {
      for (const end of ENDS) {
        for (const length of LENGTHS) {
          const text = start + pump.repeat(Math.ceil(length / pump.length)) + end
          if (isSlow(expression, text)) return JSON.stringify([start, `${pump} x ${length}`, end])
        }
      }
    }
  }
  return undefined
}

/** What stands before anything that varies. */
function fixedStart(source: string): string {
  const [, fixed = ''] = /^\^?((?:(?:[^\\[\](){}*+?^$|.]|\\[^a-zA-Z\d])(?![*+?{]))*)/.exec(source) ?? []
  return fixed.replaceAll('\\', '')
}

/** The least of some looks, so that it matters little what else runs on the machine. */
function isSlow(expression: RegExp, text: string): boolean {
  for (let look = 0; look < LOOKS; look++) {
    expression.lastIndex = 0
    const start = process.hrtime.bigint()
    expression.test(text)
    const ns = Number(process.hrtime.bigint() - start)
    if (ns <= Math.max(LEAST_NS, MOST_NS * text.length)) return false
  }
  return true
}
