// Which options of Connection are seen: those that are listed, and nothing that only looks like them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOSE, connectionOptions, KEEP_ALIVE, UPGRADE } from './lines.ts'

for (const [value, options] of [
  ['close', CLOSE],
  ['Keep-Alive, UPGRADE', KEEP_ALIVE | UPGRADE],
  [',, \t close\t ,', CLOSE],
  ['upgrade,close,keep-alive', CLOSE | KEEP_ALIVE | UPGRADE],
  ['', 0],
  [', ,', 0],
  ['closed, clos', 0],
  ['close x', 0],
  ['"close"', 0],
  ['close;q=1', 0],
  ['\xa0close, close\xa0', 0],
  ['keep\x7falive, keep_alive', 0],
] as const) {
  test(JSON.stringify(value), () => assert.equal(connectionOptions(value), options))
}
