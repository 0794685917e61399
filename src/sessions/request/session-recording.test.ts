import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { userCharge } from '../../kit/core/shares/charge.ts'
import type { Recordings } from '../io/recordings.ts'
import { SessionRecordingFilter } from './session-recording.ts'

interface Settings {
  readonly input: boolean
  readonly isRequired: boolean
}

const TARGET = '/api/v1/namespaces/shop/pods/web/exec?command=sh'
const HEAD = [':status', '101', 'upgrade', 'websocket', 'sec-websocket-protocol', 'v5.channel.k8s.io']

/** @param before of the cluster that the request came by @returns whether it is refused without a recording, and whether input is recorded */
function recorded(own: Settings | undefined, before: Settings | undefined) {
  const headers: string[] = []
  const recordings = {
    unavailableTo: () => 'the disk is full',
    slotOf: () => 0,
    open: (_: string, header: string) => {
      headers.push(header)
      return 'the disk is full'
    },
  } as unknown as Recordings
  const filter = new SessionRecordingFilter({
    recordings,
    inflate: () => Buffer.alloc(0),
    clock: { now: () => 0, monotonic: () => 0 },
    counted: () => undefined,
  })
  const decision = {
    info: parseRequestInfo('GET', TARGET),
    isUpgrade: true,
    user: { name: 'alice', groups: [] },
    cluster: { name: 'east', sessionRecording: own },
    cameBy: { cluster: { sessionRecording: before } },
    moment: { nowMs: 0 },
    exchange: {
      gw: { uuid: () => 'id', draining: false },
      record: { impersonator: '', namespace: 'shop', name: 'web', auditId: '', remoteAddress: '' },
      target: TARGET,
      charge: userCharge('east', 'alice', 1),
    },
    tap: undefined,
  }
  const refusal = filter.check(decision as unknown as Decision)
  const { tap } = decision as unknown as Decision
  tap?.begin(HEAD, { onReady: () => undefined, onBroken: () => undefined })
  return {
    isRefused: refusal !== undefined,
    isTapped: tap !== undefined,
    input: headers.join().includes('"input":true'),
  }
}

test('a session that was handed over is recorded as the stricter settings of both clusters demand', () => {
  const allowed = { input: false, isRequired: false }
  const required = { input: false, isRequired: true }
  const typed = { input: true, isRequired: false }
  assert.deepEqual(recorded(undefined, undefined), { isRefused: false, isTapped: false, input: false })
  for (const [one, other] of [
    [allowed, required],
    [undefined, required],
    [typed, required],
  ] as const) {
    assert.equal(recorded(one, other).isRefused, true)
    assert.equal(recorded(other, one).isRefused, true)
  }
  for (const other of [undefined, allowed]) {
    assert.deepEqual(recorded(typed, other), { isRefused: false, isTapped: true, input: true })
    assert.deepEqual(recorded(other, typed), { isRefused: false, isTapped: true, input: true })
  }
  assert.deepEqual(recorded(allowed, allowed), { isRefused: false, isTapped: true, input: false })
})
