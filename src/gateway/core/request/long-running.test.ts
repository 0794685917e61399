import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLongRunning, isWatch } from './long-running.ts'
import { parseRequestInfo } from './request-info.ts'

const ROWS: readonly (readonly [string, string, 'watch' | 'long' | 'short'])[] = [
  ['GET', '/api/v1/pods?watch=1', 'watch'],
  ['GET', '/api/v1/watch/pods', 'watch'],
  ['GET', '/api/v1/namespaces/x/pods/p/log', 'long'],
  ['GET', '/api/v1/namespaces/x/pods/p/log?follow=true', 'long'],
  ['POST', '/api/v1/namespaces/x/pods/p/exec', 'long'],
  ['GET', '/api/v1/namespaces/x/pods/p/attach', 'long'],
  ['POST', '/api/v1/namespaces/x/pods/p/portforward', 'long'],
  ['GET', '/api/v1/namespaces/x/services/s/proxy/a/b', 'long'],
  ['GET', '/api/v1/proxy/namespaces/x/pods/p', 'long'],
  ['GET', '/debug/pprof/profile', 'long'],
  ['GET', '/debug/pprof', 'short'],
  ['GET', '/api/v1/pods', 'short'],
  ['GET', '/api/v1/namespaces/x/pods/exec', 'short'],
  ['GET', '/watch', 'short'],
  ['WATCH', '/healthz', 'short'],
  ['GET', '/log/exec', 'short'],
]

test('long-running requests and watches', () => {
  for (const [method, target, expected] of ROWS) {
    const info = parseRequestInfo(method, target)
    assert.ok(!('failure' in info))
    assert.equal(isLongRunning(info), expected !== 'short', `${method} ${target}`)
    assert.equal(isWatch(info), expected === 'watch', `${method} ${target}`)
  }
})
