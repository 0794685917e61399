// The filter of pod protection in a gateway thread, with its line to the ledger.

import type { SubjectFilters } from '../../gateway/request/exchange/decision.ts'
import { PodProtectionFilter } from '../request/protect.ts'
import { type LedgerLine, ThreadProtection } from './thread-ledger.ts'

export function protectionFilters(line: LedgerLine): SubjectFilters {
  const gate = new ThreadProtection(line)
  return {
    protection: new PodProtectionFilter(gate),
  }
}
