import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Build } from '../kit/io/program/build.ts'
import { version } from './version.ts'

const commit = '0123456789abcdef0123456789abcdef01234567'
const bundle: Build = { version: '1.2.3', commit, modified: false, date: '2026-11-22T22:00:00Z', from: 'bundle' }

function shown(output: 'text' | 'json', build?: Build): string {
  let text = ''
  const out = (more: string): void => {
    text += more
  }
  assert.equal(version({ output, out, ...(build !== undefined && { build }) }), 0)
  return text
}

test('as JSON: version, commit, build, Node and platform', () => {
  assert.deepEqual(JSON.parse(shown('json', bundle)), {
    version: '1.2.3',
    gitCommit: commit,
    gitTreeState: 'clean',
    commitDate: '2026-11-22T22:00:00Z',
    build: 'bundle',
    nodeVersion: process.version,
    platform: `${process.platform}/${process.arch}`,
  })
  assert.equal(JSON.parse(shown('json', { ...bundle, modified: true })).gitTreeState, 'dirty')
})

test('for people: one line; a tree with changes says so', () => {
  assert.match(
    shown('text', bundle),
    /^portcullis 1\.2\.3 \(commit 0123456789ab, 2026-11-22T22:00:00Z; Node v\S+, \S+\)\n$/,
  )
  assert.match(shown('text', { ...bundle, modified: true }), /commit 0123456789ab with changes,/)
})

test('the sources name no commit: they may have changed since', () => {
  assert.match(shown('text'), /^portcullis \d+\.\d+\.\d+ \(from source; Node/)
  const { gitCommit, gitTreeState, build } = JSON.parse(shown('json'))
  assert.deepEqual([gitCommit, gitTreeState, build], ['', '', 'source'])
})
