// A watch that cannot go on where its client left: answered as a kube-apiserver does, by one event.

import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import { refusalStatus } from '../../kit/core/refusal/refusal.ts'
import { refuseExpired } from './refusals.ts'

export function expiredWatch(streamType: string): (permit: Permit) => Promise<undefined> {
  return (permit) => {
    const event = Buffer.from(`${JSON.stringify({ type: 'ERROR', object: refusalStatus(refuseExpired()) })}\n`)
    const parts = [event]
    new OwnAnswer(permit, { next: () => parts.pop() ?? 'end', over: () => undefined }).begin([
      'content-type',
      streamType,
    ])
    return Promise.resolve(undefined)
  }
}
