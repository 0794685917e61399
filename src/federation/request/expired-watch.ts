// A watch that cannot go on where its client left: answered as a kube-apiserver does, by one event.

import type { Permit } from '../../gateway/request/exchange/decision.ts'
import { OwnAnswer } from '../../gateway/request/exchange/own-answer.ts'
import type { HeaderList } from '../../kit/api/stream.ts'
import { refusalStatus } from '../../kit/core/refusal/refusal.ts'
import { refuseExpired } from './refusals.ts'
import type { ShownObjects } from './shown-objects.ts'

/** @param webSocket fields of the answer that opens one; undefined = it is sent over HTTP */
export function expiredWatch(
  shown: ShownObjects,
  webSocket: HeaderList | undefined,
): (permit: Permit) => Promise<undefined> {
  return (permit) => {
    const parts = [shown.plainEvent('ERROR', refusalStatus(refuseExpired()))]
    const answer = new OwnAnswer(permit, { next: () => parts.pop() ?? 'end', over: () => undefined })
    answer.begin(['content-type', shown.form.streamType], webSocket)
    return Promise.resolve(undefined)
  }
}
