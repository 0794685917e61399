// What access grants add to the program, which has no other import of them (program/subjects/subjects.ts).

import type { Config } from '../process/config/config.ts'
import { addAccess } from './cli/program.ts'
import { ACCESS_APPROVER, ACCESS_GRANTS, ACCESS_REQUESTER } from './core/access-grant-kind.ts'
import { GRANT_METRICS } from './metrics/descriptors.ts'

export const GRANTS = {
  kinds: [],
  embeddedKinds: [ACCESS_GRANTS],
  roles: [
    { role: ACCESS_REQUESTER, given: ({ accessRequesters }: Config) => accessRequesters },
    { role: ACCESS_APPROVER, given: ({ accessApprovers }: Config) => accessApprovers },
  ],
  settings: ['access'] as const,
  metrics: GRANT_METRICS,
  addCommands: addAccess,
  component: async () => (await import('./app/access-grants.ts')).createAccessGrants,
}
