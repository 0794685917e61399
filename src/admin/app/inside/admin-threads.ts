// What the admin listener asks the gateway threads for. The program's pool of threads implements it, with calls of its own beside these.

import type { ShareReport } from '../../../kit/core/shares/shares-report.ts'
import type { ProfileKind } from '../../io/profile.ts'

/** Argument and answer of each call: plain data that can be cloned. */
export interface AdminCalls {
  /** The largest holders of shared resources. */
  readonly shares: { readonly argument: undefined; readonly answer: readonly ShareReport[] }
  /** JSON of a profile of the thread, taken over this many seconds. */
  readonly profile: {
    readonly argument: { readonly kind: ProfileKind; readonly seconds: number }
    readonly answer: string
  }
}

export interface AdminThreads {
  /** One answer per thread; threads that are gone, fail or take too long are omitted. Never rejects. */
  askThreads<K extends keyof AdminCalls>(
    name: K,
    argument: AdminCalls[K]['argument'],
    options?: { readonly timeoutMs: number },
  ): Promise<readonly { readonly thread: number; readonly answer: AdminCalls[K]['answer'] }[]>
}
