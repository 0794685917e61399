// The table of advisories in test/attacks/README.md names attacks that exist, and every advisory that an attack refers to.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadCorpus } from '../attacks/corpus.ts'

const PAGE = join(import.meta.dirname, '../attacks/README.md')
const CVE = /CVE-\d{4}-\d{4,}/g
/** Advisories about HTTP/2 that every implementation of a server has to know. */
const KNOWN = [
  ...Array.from({ length: 8 }, (_, i) => `CVE-2019-${9511 + i}`),
  'CVE-2023-44487',
  'CVE-2023-45288',
  'CVE-2024-27316',
  'CVE-2025-8671',
]

/** By advisory: the attacks. */
function readTable(): ReadonlyMap<string, ReadonlySet<string>> {
  const attacks = new Map<string, Set<string>>()
  for (const [, advisories = '', named = ''] of readFileSync(PAGE, 'utf8').matchAll(
    /^\| (CVE-.*?) \|.*\| (.*?) \|$/gm,
  )) {
    const files = [...named.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)
    for (const [advisory] of advisories.matchAll(CVE)) {
      attacks.set(advisory, new Set([...(attacks.get(advisory) ?? []), ...files]))
    }
  }
  return attacks
}

test('each advisory of the table has attacks, and they exist', async () => {
  const [table, corpus] = [readTable(), await loadCorpus()]
  for (const known of KNOWN) assert.ok(table.has(known), known)
  for (const [advisory, attacks] of table) {
    assert.ok(attacks.size > 0, advisory)
    for (const name of attacks) assert.ok(corpus.has(name), `${advisory}: test/attacks/corpus/${name}.ts`)
  }
})

test('each advisory that an attack refers to is in the table, with that attack', async () => {
  const table = readTable()
  for (const [name, { reference }] of await loadCorpus()) {
    for (const [advisory] of reference.matchAll(CVE)) assert.ok(table.get(advisory)?.has(name), `${advisory}: ${name}`)
  }
})
