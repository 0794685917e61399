// Addresses that are blocked for a while unless they present a valid credential.

import { Penalties } from '../../kit/core/penalties/penalties.ts'

const MAX_BLOCKED = 16_384

/** Block times are decided once for all threads and replicas: sources whose time is over need not be remembered. */
export function blockedSources(): Penalties {
  return new Penalties(0, MAX_BLOCKED)
}
