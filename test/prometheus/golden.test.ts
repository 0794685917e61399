// What /metrics of a busy gateway has: names, types, help texts and labels. Dashboards and alerts of users depend on them, so a
// change is a line of the file, which a reviewer sees. UPDATE=1 writes it.

import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { after, before, test } from 'node:test'
import { PATIENT } from '../harness/patience.ts'
import { waitFor } from '../harness/wait.ts'
import { type BusyGateway, startBusyGateway } from './busy-gateway.ts'

interface Described {
  readonly type: string
  readonly help: string
  /** null = it had no series when the file was written. */
  readonly labels: readonly string[] | null
}

const FILE = join(resolve(import.meta.dirname, '../..'), 'test/data/metrics.json')
const TIMEOUT = { timeoutMs: 180_000, intervalMs: 500 }
/** Scrapes that write the file. */
const LOOKS = 30
let busy: BusyGateway

before(async () => {
  busy = await startBusyGateway()
}, PATIENT)
after(() => busy?.stop())

/** Adds what a scrape has to what others had: a series may come and go. */
function take(text: string, seen: Map<string, Described>): void {
  const headers = text.matchAll(/^# HELP (\w+) (.*)\n# TYPE \1 (\w+)$/gm)
  for (const [, name = '', help = '', type = ''] of headers) {
    assert.equal(text.split(`# TYPE ${name} `).length, 2, `${name} is described once`)
    const series = text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?(?:\\{(.*)\\})? `, 'gm'))
    const labels = new Set(seen.get(name)?.labels ?? [])
    let any = seen.get(name)?.labels !== undefined && seen.get(name)?.labels !== null
    for (const [, own = ''] of series) {
      any = true
      for (const [, label = ''] of own.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)) if (label !== 'le') labels.add(label)
    }
    seen.set(name, { type, help, labels: any ? [...labels].sort() : null })
  }
}

test('names, types, help texts and labels are those of the file', PATIENT, async () => {
  const seen = new Map<string, Described>()
  if (process.env['UPDATE'] === '1') {
    let looks = 0
    await waitFor(
      'everything',
      async () => {
        take(await busy.metrics(), seen)
        return ++looks >= LOOKS
      },
      TIMEOUT,
    )
    const rows = [...seen].sort(([a], [b]) => (a < b ? -1 : 1))
    writeFileSync(
      FILE,
      `{\n${rows.map(([name, row]) => `  ${JSON.stringify(name)}: ${JSON.stringify(row)}`).join(',\n')}\n}\n`,
    )
  }
  const expected: Record<string, Described> = JSON.parse(readFileSync(FILE, 'utf8'))
  await waitFor(
    'all that the file has',
    async () => {
      take(await busy.metrics(), seen)
      for (const [name, row] of Object.entries(expected)) {
        const found = seen.get(name)
        assert.deepEqual(found && { ...found, labels: row.labels === null ? null : found.labels }, row, name)
      }
      return true
    },
    TIMEOUT,
  )
  assert.deepEqual(
    [...seen.keys()].filter((name) => !(name in expected)),
    [],
    'metrics that the file does not have',
  )
})
