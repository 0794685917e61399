import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { waitFor } from '../../../test/harness/wait.ts'
import { canCompress, GzipSource, MOST_COMPRESSING, OwnParts, takesGzip } from './gzip-source.ts'

const PIECE = Buffer.alloc(32 * 1024)

/** A source of so many pieces, in memory that is used again for each. */
function scene(count: number) {
  let made = 0
  let isOver = false
  const source = new GzipSource(
    new OwnParts(() => (made < count ? PIECE.fill(String(made++ % 10)) : undefined)),
    () => {
      isOver = true
    },
  )
  return { source, made: () => made, isOver: () => isOver }
}

test('what comes out is what was put in, as fast as it is taken', async () => {
  const { source, made, isOver } = scene(64)
  const chunks: Buffer[] = []
  let ended = false
  let reads = true
  const proceed = (): void => {
    for (let next = reads ? source.next() : undefined; next !== undefined; next = source.next()) {
      if (next === 'end') {
        ended = true
        break
      }
      chunks.push(next)
    }
  }
  source.attach({ proceed, drop: assert.fail })
  proceed()
  await waitFor('some of it', () => made() > 4)
  reads = false
  const before = made()
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
  assert.ok(made() <= before + 1, 'nothing more is asked for while the client takes nothing')
  reads = true
  proceed()
  await waitFor('the end', () => ended)
  const whole = Buffer.concat(Array.from({ length: 64 }, (_, at) => Buffer.alloc(PIECE.length, String(at % 10))))
  assert.ok(gunzipSync(Buffer.concat(chunks)).equals(whole))
  source.over()
  assert.ok(isOver())
})

test('so many at once, and no more; one that is over makes room, wherever it was', () => {
  const sources = Array.from({ length: MOST_COMPRESSING }, () => scene(10).source)
  assert.equal(canCompress(), false)
  for (const source of sources) {
    source.attach({ proceed: () => undefined, drop: assert.fail })
    source.next()
    source.over()
  }
  assert.equal(canCompress(), true)
})

test('who takes gzip, as kube-apiserver reads it', () => {
  for (const yes of ['gzip', 'deflate, gzip', 'gzip,br', ' gzip ']) assert.ok(takesGzip(yes), yes)
  for (const no of ['', 'br', 'gzip;q=1', 'x-gzip', '*', 'GZIP']) assert.ok(!takesGzip(no), no)
})
