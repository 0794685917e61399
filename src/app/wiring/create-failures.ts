// Where failures are counted: in this process, or in Redis for all replicas.

import type { Clock, Logger } from '../../api/ports/ports.ts'
import type { Config } from '../config/config.ts'
import { AddressFailures } from '../failures/address-failures.ts'
import type { LimitSharing } from './limit-sharing.ts'

const TOLD_MS = 60_000

export function createFailures(
  { maxAuthenticationFailures, authenticationFailureBlockMs }: Config,
  sharing: Pick<LimitSharing, 'counter'> | undefined,
  clock: Clock,
  log: Logger,
): AddressFailures {
  let toldMs = Number.NEGATIVE_INFINITY
  const rarely = (tell: () => void): void => {
    if (clock.monotonic() - toldMs < TOLD_MS) return
    toldMs = clock.monotonic()
    tell()
  }
  const failures = new AddressFailures({
    free: maxAuthenticationFailures,
    longestBlockMs: authenticationFailureBlockMs,
    nowMs: () => clock.monotonic(),
    ...(sharing !== undefined && { shared: sharing.counter }),
    onError: (error) => rarely(() => log.warn('failed credentials could not be counted', { error })),
  })
  failures.onBlocked((blocks) =>
    rarely(() =>
      log.warn('an address is blocked: too many of its credentials or handshakes have failed', { ...blocks[0] }),
    ),
  )
  return failures
}
