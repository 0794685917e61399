// The clock of the machine: the only place that reads time for the request path.

import type { Clock } from '../api/ports.ts'

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
}
