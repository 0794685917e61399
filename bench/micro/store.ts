// `node bench/micro/store.ts [dir]`: what the store of the embedded API server costs. The disk under `dir` (default: the temporary
// directory) decides about writes: each one waits for an fsync.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import type { StoreWrite } from '../../src/apiserver/api/object-store.ts'
import { openSqliteStore, type SqliteStore } from '../../src/apiserver/io/store/store.ts'

const OBJECTS = 2_000
const BYTES = 3_000
const REPEATS = 200
const RESOURCE = 'upstreamclusters.proxy.kubegateway.io'
const KEY = Buffer.alloc(32, 1)

const dir = mkdtempSync(join(process.argv[2] ?? tmpdir(), 'portcullis-bench-'))
const file = join(dir, 'store.db')

function put(index: number, expected: number, resource = RESOURCE): StoreWrite {
  const name = `cluster-${index}`
  return { resource, namespace: '', name, expected, object: { metadata: { name }, spec: { text: 'x'.repeat(BYTES) } } }
}

function measure(what: string, times: number, action: () => void): void {
  const startMs = performance.now()
  action()
  const ms = performance.now() - startMs
  console.log(
    `${what.padEnd(58)} ${ms.toFixed(0).padStart(6)} ms  ${((ms / times) * 1_000).toFixed(0).padStart(6)} us each`,
  )
}

try {
  let store: SqliteStore = openSqliteStore({ file, key: KEY })
  const reopen = (): void => {
    store.close()
    store = openSqliteStore({ file, key: KEY })
  }
  const at = (index: number): number => store.get(put(index, 0))?.revision ?? 0
  measure(`create ${OBJECTS} objects of ${BYTES} bytes, one transaction each`, OBJECTS, () => {
    for (let i = 0; i < OBJECTS; i++) store.write([put(i, 0)])
  })
  measure(`create ${OBJECTS} Secrets (encrypted)`, OBJECTS, () => {
    for (let i = 0; i < OBJECTS; i++) store.write([put(i, 0, 'secrets')])
  })
  measure(`create ${OBJECTS} more in one transaction`, OBJECTS, () => {
    store.write(Array.from({ length: OBJECTS }, (_, i) => put(i, 0, 'leases.coordination.k8s.io')))
  })
  measure('update one of them', REPEATS, () => {
    for (let i = 0; i < REPEATS; i++) store.write([put(7, at(7))])
  })
  measure(`open, with ${3 * OBJECTS} objects`, 1, reopen)
  measure(`first list of ${OBJECTS}`, 1, () => store.list(RESOURCE, { namespace: '' }))
  measure('list again', 1, () => store.list(RESOURCE, { namespace: '' }))
  measure('list of an older revision', 1, () => store.list(RESOURCE, { namespace: '', revision: store.revision - 100 }))
  measure('first list of the Secrets', 1, () => store.list('secrets', { namespace: '' }))
  measure(`replay of ${OBJECTS} events`, OBJECTS, () => store.watch('secrets', '', 1, () => {})())
  measure('backup', 1, () => store.backup(join(dir, 'backup.db')))
  store.close()
} finally {
  rmSync(dir, { recursive: true })
}
