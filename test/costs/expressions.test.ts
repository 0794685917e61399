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

/** Of those that take the square of a long text, why none is long. */
const BOUNDED: Readonly<Record<string, string>> = {
  'src/api/scale-up-guard/checks.ts': 'of a duration that matches the pattern of the whole text, which is linear',
  'src/api/upstream-cluster/auto-degrade-checks.ts':
    'of a duration that matches the pattern of the whole text: 28 characters',
  'src/app/wiring/tracing.ts': "the operator's flag",
  'src/cli/import/kubeconfig.ts': 'a process of its own, of the user who starts it',
  'src/cli/protect/install-probe.ts': 'a process of its own, of the user who starts it',
  'src/cli/protect/pod.ts': 'a process of its own, of the user who starts it',
  'src/controllers/ledger/refusal-events.ts': 'a name of at most 253 characters',
  'src/controllers/status/events.ts': 'a name of at most 253 characters',
  'src/core/scale/pod-metrics/quantity.ts': 'a quantity of at most 64 characters',
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
    const input = BOUNDED[file] === undefined ? slowInput(new RegExp(source, flags)) : undefined
    return input === undefined ? [] : [`${file}: /${source}/ on ${input}`]
  })
  assert.deepEqual(slow, [])
})

function slowInput(expression: RegExp): string | undefined {
  for (const pump of pumps(expression.source)) {
    for (const end of ENDS) {
      for (const length of LENGTHS) {
        const text = pump.repeat(Math.ceil(length / pump.length)) + end
        if (isSlow(expression, text)) return `${JSON.stringify(pump)} x ${length}, ${JSON.stringify(end)}`
      }
    }
  }
  return undefined
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
