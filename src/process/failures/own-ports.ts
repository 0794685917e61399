// Counts failures per address for the main thread's ports: the embedded API server, the webhooks and the admin listener.

import { retryAfterBlock } from '../../gateway/core/limits/spread-retry-after.ts'
import { sha256 } from '../../gateway/io/reviews/credential-hashes.ts'
import type { FailureCounts } from '../api/failure-counts.ts'
import type { AddressFailures } from './address-failures.ts'

/** Remembered wrong credentials, so that a client that keeps using an expired one does not get its address blocked. */
export const MAX_REMEMBERED = 4096

export interface OwnPortFailures extends FailureCounts {
  /** A TLS handshake of this address has failed. */
  handshakeFailed(source: string): void
  isBlocked(source: string): boolean
}

interface OwnPortFailuresDeps {
  readonly failures: Pick<AddressFailures, 'failed' | 'blockedMs'>
  /** In [0, 1). */
  random(): number
  /** A client was told to retry later. */
  onRefused(): void
}

export function ownPortFailures({ failures, random, onRefused }: OwnPortFailuresDeps): OwnPortFailures {
  const remembered = new Set<string>()
  return {
    failed(source, credential) {
      const key = sha256(`${source} ${credential}`)
      if (remembered.has(key)) return
      remembered.add(key)
      const [oldest = ''] = remembered
      if (remembered.size > MAX_REMEMBERED) remembered.delete(oldest)
      void failures.failed(source)
    },
    handshakeFailed: (source) => void failures.failed(source),
    isBlocked: (source) => failures.blockedMs(source) > 0,
    waitSeconds(source) {
      const blockedMs = failures.blockedMs(source)
      if (blockedMs === 0) return 0
      onRefused()
      return retryAfterBlock(blockedMs, random())
    },
  }
}
