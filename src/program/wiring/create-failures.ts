// Where failures are counted: in this process, or in Redis for all replicas.

import type { Clock, Logger } from '../../kit/api/ports.ts'
import { RareWarnings } from '../../kit/io/logs/rare-warnings.ts'
import type { Config } from '../../process/config/config.ts'
import { AddressFailures, type FailureOptions } from '../../process/failures/address-failures.ts'

/** @param shared counters of all replicas; undefined = no Redis */
export function createFailures(
  {
    maxAuthenticationFailures,
    authenticationFailureBlockMs,
  }: Pick<Config, 'maxAuthenticationFailures' | 'authenticationFailureBlockMs'>,
  shared: FailureOptions['shared'],
  clock: Clock,
  log: Logger,
): AddressFailures {
  const [uncounted, blocked] = [new RareWarnings({ clock, log }), new RareWarnings({ clock, log })]
  const failures = new AddressFailures({
    free: maxAuthenticationFailures,
    longestBlockMs: authenticationFailureBlockMs,
    nowMs: () => clock.monotonic(),
    ...(shared !== undefined && { shared }),
    onError: (error) => uncounted.warn('failed credentials could not be counted', { error }),
  })
  failures.onBlocked((blocks) =>
    blocked.warn('an address is blocked: too many of its credentials or handshakes have failed', { ...blocks[0] }),
  )
  return failures
}
