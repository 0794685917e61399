// What the main thread tells the gateway threads about scale-up guards.

import { Topic } from '../../kit/core/topics/topics.ts'
import type { GuardInForce } from '../core/guard/guards-in-force.ts'

/** All node groups currently backed off. */
export const GUARDS_IN_FORCE = new Topic<readonly GuardInForce[]>('scale-up-guards')
