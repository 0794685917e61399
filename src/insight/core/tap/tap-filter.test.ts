import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createRecord, type RequestRecord } from '../../../gateway/api/request-record.ts'
import { compileTapFilter, EVERYTHING, type TapFilter, type TapPhase, tapMatches } from './tap-filter.ts'

interface Case {
  readonly name: string
  readonly filter: Partial<TapFilter>
  readonly request?: Partial<RequestRecord>
  readonly phase?: TapPhase
  readonly matches: boolean
}

const REQUEST: Partial<RequestRecord> = {
  cluster: 'prod',
  method: 'GET',
  verb: 'list',
  isResourceRequest: true,
  apiVersion: 'v1',
  resource: 'pods',
  namespace: 'shop',
  user: 'system:serviceaccount:shop:ci-bot',
  groups: ['system:serviceaccounts', 'system:authenticated'],
  userAgent: 'kubectl/v1.36.0 (linux/amd64)',
  remoteAddress: '10.1.2.3',
  code: 200,
  durationMs: 12,
  ttfbMs: 10,
}

const CASES: readonly Case[] = JSON.parse(
  readFileSync(new URL('../../../../test/data/tap-filters.json', import.meta.url), 'utf8'),
)

for (const { name, filter, request, phase = 'ended', matches } of CASES) {
  test(`a tap: ${name}`, () => {
    const record = { ...createRecord(), ...REQUEST, ...request }
    assert.equal(tapMatches(compileTapFilter({ ...EVERYTHING, ...filter }), record, phase), matches)
  })
}
