// Addresses that get nothing without a valid credential for a while.

import { Penalties } from '../../kit/core/penalties/penalties.ts'

const MAX_BLOCKED = 16_384

/** For how long is decided for all threads together, and between replicas: nothing has to be remembered of those whose time is over. */
export function blockedSources(): Penalties {
  return new Penalties(0, MAX_BLOCKED)
}
