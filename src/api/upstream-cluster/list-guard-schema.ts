// The schema of spec.listGuard.

import { defaultsTo, flag, integer, list, object } from '../kube/json-schema.ts'
import { RULE_SCHEMA } from './rule-schema.ts'

export const LIST_GUARD_SCHEMA = object(
  'When present, even if empty, lists without a limit of what is known to be large are refused with 429, of all namespaces or of one. ' +
    'Pages, watches, lists from the cache (resourceVersion=0), nodes and controllers pass. Default: none is refused.',
  {
    shadow: defaultsTo(false, flag('Count and warn, but let pass.')),
    maxBytesUnlimited: defaultsTo(
      50_000_000,
      integer(
        'The largest list that is answered to who sets no limit, in bytes without compression, as last seen. What was never seen passes.',
        100_000,
      ),
    ),
    exempt: list('Lists that pass, whatever they cost. What spec.degrade.exempt names passes, too.', RULE_SCHEMA),
  },
)
