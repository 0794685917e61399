// How command blocks of the documentation are found, and what a comment before one of them may say.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { commandBlocks } from '../harness/docs/command-blocks.ts'

const ROOT = resolve(import.meta.dirname, '../..')

const block = (text: string): string => `\`\`\`sh\n${text}\n\`\`\`\n`

test('blocks in their order, with stand-ins, another user, or a reason why they do not run', () => {
  const page = [
    '# Title\n',
    block('one\ntwo'),
    '```yaml\nkind: none\n```\n',
    '<!-- run: as alice, 192.0.2.10:8443=GATEWAY -->\n',
    block('ask 192.0.2.10:8443'),
    '1. In a list:\n\n   ```sh\n   three\n   ```\n',
    '<!-- run: not here: a reason, with a comma -->\n',
    block('four'),
    '<!-- run: apart -->\n',
    block('five'),
  ].join('')
  const found = commandBlocks('p.md', page)
  assert.deepEqual(
    found.map(({ text, user, apart, skipped }) => [text, user, apart, skipped]),
    [
      ['one\ntwo', '', false, ''],
      ['ask 192.0.2.10:8443', 'alice', false, ''],
      ['three', '', false, ''],
      ['four', '', false, 'a reason, with a comma'],
      ['five', '', true, ''],
    ],
  )
  assert.deepEqual([...(found[1]?.standIns ?? [])], [['192.0.2.10:8443', 'GATEWAY']])
  assert.equal(found[0]?.place, 'p.md:2')
})

test('a block that is not run names the test that runs it, or says that there is none', () => {
  const pages = ['README.md', 'CONTRIBUTING.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)]
  const left = pages
    .filter((name) => name.endsWith('.md'))
    .flatMap((name) => commandBlocks(name, readFileSync(join(ROOT, name), 'utf8')))
    .filter(({ skipped }) => skipped !== '')
  assert.ok(left.length > 10, `${left.length} blocks`)
  for (const { place, skipped } of left) {
    const tests = skipped.match(/\btest\/[\w./-]*\w/g) ?? []
    assert.ok(tests.length > 0 || skipped.startsWith('no test: '), `${place}: ${skipped}`)
    for (const path of tests) assert.ok(existsSync(join(ROOT, path)), `${place}: there is no ${path}`)
  }
})

test('an unknown annotation is an error: a block is not left out by accident', () => {
  for (const [page, expected] of [
    [`<!-- run: sometimes -->\n${block('x')}`, /sometimes is not understood/],
    [`<!-- run: VIP=GATEWAY -->\n${block('x')}`, /the block has no VIP/],
    ['<!-- run: apart -->\ntext\n', /stands before no command block/],
  ] as const) {
    assert.throws(() => commandBlocks('p.md', page), expected)
  }
})
