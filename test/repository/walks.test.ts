// The walks of docs/walks.md: each step is where it says, and whoever searches for its name finds it.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'

const ROOT = resolve(import.meta.dirname, '../..')
const PAGE = readFileSync(join(ROOT, 'docs/walks.md'), 'utf8')
const WALKS = ['A GET', 'A change of an UpstreamCluster', 'The deletion of a pod']

interface Step {
  /** `serve`, or `Exchange.end`. */
  readonly name: string
  readonly file: string
}

function walk(title: string): string {
  const [, text = assert.fail(`docs/walks.md has no walk "${title}"`)] = PAGE.split(`\n## ${title}\n`)
  return text.split(/\n##+ /)[0] ?? ''
}

function stepsOf(text: string): Step[] {
  return [...text.matchAll(/`((?:[A-Z]\w+\.)?[a-z]\w+)`\s+(?:in|\(in)\s+`(src\/[\w./-]+\.ts)`/g)].map(
    ([, name = '', file = '']) => ({ name, file }),
  )
}

/** Where a function, or a method of a class, is defined. */
function definition(name: string): RegExp {
  const [method = '', owner] = name.split('.').reverse()
  if (owner === undefined) return new RegExp(`^(?:export )?(?:async )?function ${method}\\b`, 'm')
  return new RegExp(
    `^(?:export )?(?:abstract )?class ${owner}\\b(?:(?!\\n}\\n)[^])*?\\n  (?:protected )?(?:async )?#?${method}[(<]`,
    'm',
  )
}

const sources = new Map(
  readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => [join('src', name), readFileSync(join(ROOT, 'src', name), 'utf8')]),
)

for (const title of WALKS) {
  const steps = stepsOf(walk(title))

  test(`${title}: each step is in the file that it names`, () => {
    assert.ok(steps.length >= 10, `${steps.length} steps`)
    for (const { name, file } of steps) {
      const source = sources.get(file) ?? assert.fail(`${name}: there is no ${file}`)
      assert.match(source, definition(name), `${file} does not define ${name}`)
    }
  })

  test(`${title}: the name alone finds each step`, () => {
    for (const { name, file } of steps) {
      const found = [...sources].filter(([, source]) => definition(name).test(source)).map(([path]) => path)
      assert.deepEqual(found, [file], name)
    }
  })

  test(`${title}: goes down, and comes back once`, () => {
    const ways = [...walk(title).matchAll(/^(Down|Back)\b/gm)].map(([, way]) => way)
    assert.deepEqual(ways, ['Down', 'Back'])
  })
}
