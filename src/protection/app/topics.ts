// Topics and questions between the main thread and the gateway threads about pod protection.

import { Question } from '../../kit/core/topics/questions.ts'
import { Topic } from '../../kit/core/topics/topics.ts'
import type {
  ProtectionRequest,
  ProtectionVerdict,
  Reservation,
  ScaleDownAnswer,
  ScaleDownQuestion,
} from '../api/protection.ts'

/** Namespaces in which pods may have a protector, to the gateway threads; undefined = any, as before the first message. */
export const PROTECTED_NAMESPACES = new Topic<ReadonlySet<string> | undefined>('protected-namespaces')
/** Those of deletions that upstream refused, or that were not sent; to the main thread. */
export const RELEASED_RESERVATIONS = new Topic<readonly Reservation[]>('released-reservations')
/** Deletions to be evaluated together; one verdict for each. */
export const DELETIONS = new Question<readonly ProtectionRequest[], readonly ProtectionVerdict[]>('deletions')
/** Replicas about to be lowered. */
export const SCALE_DOWN = new Question<ScaleDownQuestion, ScaleDownAnswer>('scale-down')
