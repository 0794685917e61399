import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CompiledSessionRecording } from '../../gateway/core/cluster/compiled-cluster.ts'
import { parseRequestInfo } from '../../gateway/core/request/request-info.ts'
import type { Decision } from '../../gateway/request/exchange/decision.ts'
import { userCharge } from '../../kit/core/shares/charge.ts'
import type { Recordings } from '../io/recordings.ts'
import { SessionRecordingFilter } from './session-recording.ts'

type Settings = Pick<CompiledSessionRecording, 'input' | 'isRequired'> & Partial<CompiledSessionRecording>

const POD = '/api/v1/namespaces/shop/pods/web'
const EXEC = `${POD}/exec?command=sh`
const HEAD = [':status', '101', 'upgrade', 'websocket', 'sec-websocket-protocol', 'v5.channel.k8s.io']

/** @param before of the cluster that the request came by @returns whether it is refused without a recording, and whether input is recorded */
function recorded(own: Settings | undefined, before: Settings | undefined, target = EXEC) {
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
    inflater: () => () => Buffer.alloc(0),
    clock: { now: () => 0, monotonic: () => 0 },
    counted: () => undefined,
  })
  const decision = {
    info: parseRequestInfo('GET', target),
    isUpgrade: true,
    user: { name: 'alice', groups: [] },
    cluster: { name: 'east', sessionRecording: own && { portForwards: 'None', ...own } },
    cameBy: { cluster: { sessionRecording: before && { portForwards: 'None', ...before } } },
    moment: { nowMs: 0 },
    exchange: {
      gw: { uuid: () => 'id', draining: false },
      record: { impersonator: '', namespace: 'shop', name: 'web', auditId: '', remoteAddress: '' },
      target,
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

test('a port-forward is recorded as those clusters demand that have port-forwards recorded', () => {
  const forward = `${POD}/portforward?ports=80`
  const none = { input: true, isRequired: true }
  const output = { input: true, isRequired: false, portForwards: 'Output' } as const
  const both = { input: false, isRequired: true, portForwards: 'InputAndOutput' } as const
  assert.deepEqual(recorded(none, none, forward), { isRefused: false, isTapped: false, input: false })
  for (const other of [undefined, none]) {
    assert.deepEqual(recorded(output, other, forward), { isRefused: false, isTapped: true, input: false })
    assert.deepEqual(recorded(other, output, forward), { isRefused: false, isTapped: true, input: false })
    assert.equal(recorded(other, both, forward).isRefused, true)
  }
  const typed = { ...both, isRequired: false }
  assert.deepEqual(recorded(output, typed, forward), { isRefused: false, isTapped: true, input: true })
})
