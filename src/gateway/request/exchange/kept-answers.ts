// Charges the sender for what a request keeps of answers to the gateway's own calls, until the request ends.

import { KubeCallError } from '../../../kube/core/answers/call-errors.ts'
import { AnswerBytes } from '../../../kube/io/answers/thread-answers.ts'
import type { Exchange } from './exchange.ts'

/** @throws {NoRoomError} @throws {KubeCallError} when the request is over, since nothing would release the memory */
export function keepAnswer(exchange: Exchange, bytes: number): void {
  if (exchange.phase === 'over') throw new KubeCallError('the request has ended meanwhile')
  exchange.keptAnswers ??= new AnswerBytes(exchange.charge)
  if (exchange.keptAnswers.take(bytes)) return
  exchange.gw.events.limited('answer-bytes', exchange.charge.known)
  throw exchange.keptAnswers.full()
}
